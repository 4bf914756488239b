package inventory_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// goroutinesIn returns the number of goroutines with a function whose name contains text.
func goroutinesIn(text string) (count int) {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, text) {
			count++
		}
	}
	return count
}

func TestCache_SuspendsStreamsWithoutChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reads, waits = "cache.(*Cache[...]).Run(", "suspend.(*State).Wait("
		server := scripted.New("/v1 configmaps configmap ConfigMap\n /v1 secrets secret Secret\n")
		events := make(chan string)
		server.Handle("WATCH /api/v1/configmaps", scripted.WatchChannel(events))
		server.Handle("WATCH /api/v1/secrets", stream("v1", "Secret", metadata("a/password/3")))
		c, stop := start(t, server, nil)
		synctest.Wait()
		assert.Equal(t, [2]int{1, 1}, [2]int{goroutinesIn(reads), goroutinesIn(waits)}, "the initial list of configmaps is not complete")

		events <- streamEvents("v1", "ConfigMap", metadata("a/one/1"))
		require.NoError(t, c.WaitForSync(t.Context()))
		synctest.Wait()
		assert.Equal(t, [2]int{0, 2}, [2]int{goroutinesIn(reads), goroutinesIn(waits)})
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/secrets a/password"}, all(t, c))

		events <- scripted.Event("ADDED", `{"apiVersion":"v1","kind":"ConfigMap",`+metadata("a/two/2")+`}`)
		synctest.Wait()
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/configmaps a/two", "v1/secrets a/password"}, all(t, c))
		assert.Equal(t, [2]int{1, 1}, [2]int{goroutinesIn(reads), goroutinesIn(waits)}, "further events may follow")

		events <- scripted.Event("BOOKMARK", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"9"}}`)
		synctest.Wait()
		assert.Equal(t, [2]int{0, 2}, [2]int{goroutinesIn(reads), goroutinesIn(waits)})
		require.NoError(t, c.Health())

		server.Handle("WATCH /api/v1/configmaps", scripted.Watch(scripted.Event("DELETED", `{"apiVersion":"v1","kind":"ConfigMap",`+metadata("a/one/1")+`}`)))
		close(events)
		time.Sleep(untilRetried)
		assert.Equal(t, []string{"v1/configmaps a/two", "v1/secrets a/password"}, all(t, c))
		require.ErrorIs(t, stop(), context.Canceled)
		assert.Equal(t, [2]int{0, 0}, [2]int{goroutinesIn(reads), goroutinesIn(waits)})
	})
}
