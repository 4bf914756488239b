package dynamic_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMemoryDoesNotGrowWithThePagesOfAList reads 30 pages of 1 MB and looks at what is alive behind each: the next page
// waits in the connection, not here.
func TestMemoryDoesNotGrowWithThePagesOfAList(t *testing.T) {
	const pages, perPage, most = 30, 100, 8 << 20
	filler := strings.Repeat("x", 10<<10)
	answer := func(w http.ResponseWriter, r *http.Request) {
		number, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := strconv.Itoa(number + 1)
		if number+1 == pages {
			next = ""
		}
		fmt.Fprint(w, opening(next))
		for i := range perPage {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"metadata":{"name":"p%d"},"data":%q}`, i, filler)
		}
		fmt.Fprint(w, `]}`)
	}
	handlers := map[string]http.HandlerFunc{"": answer}
	for number := range pages {
		handlers[strconv.Itoa(number)] = answer
	}
	pods, _ := serve(t, handlers)
	before := alive()
	var peak uint64
	paged := pods.Paging(&dynamic.Paging{Page: func(metav1.ListMeta) { peak = max(peak, alive()) }})
	count := 0
	for _, err := range paged.List(t.Context(), nil) {
		require.NoError(t, err)
		count++
	}
	assert.Equal(t, pages*perPage, count)
	assert.Less(t, peak, before+most)
}

// alive is how many bytes are in use once the garbage is gone.
func alive() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
