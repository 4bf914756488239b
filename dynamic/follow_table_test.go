package dynamic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// tableOf returns a table with a row for each "name resourceVersion".
func tableOf(version string, rows ...string) string {
	text := make([]string, len(rows))
	for i, row := range rows {
		name, version, _ := strings.Cut(row, " ")
		text[i] = fmt.Sprintf(`{"cells":[%[1]q,1],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
			"metadata":{"namespace":"home","name":%[1]q,"uid":"u-%[1]s","resourceVersion":%[2]q}}}`, name, version)
	}
	return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":%q},"columnDefinitions":%s,"rows":[%s]}`,
		version, columns, strings.Join(text, ","))
}

func TestFollow_Tables(t *testing.T) {
	bookmark := scripted.Event("BOOKMARK", tableOf("7"))
	for name, tc := range map[string]struct {
		responses []response
		want      []string
		queries   []string
	}{
		"changes": {
			[]response{respond(tableOf("4", "a 1", "b 3")), {body: scripted.Event("MODIFIED", tableOf("5", "b 5")) + scripted.Event("DELETED", tableOf("6", "a 6")), stays: true}},
			[]string{"MODIFIED b 5 [b 1]", "DELETED a 6 [a 1]"},
			[]string{"", "resourceVersion=4&watch=true"},
		},
		"resumed at a bookmark": {
			[]response{respond(tableOf("4", "a 1", "b 3")), respond(bookmark), {body: scripted.Event("MODIFIED", tableOf("5", "b 8")), stays: true}},
			[]string{"MODIFIED b 8 [b 1]"},
			[]string{"", "resourceVersion=4&watch=true", "resourceVersion=7&watch=true"},
		},
		"relisted after 410": {
			[]response{respond(tableOf("4", "a 1", "b 3")), refuses(410, "Expired"), respond(tableOf("9", "b 3", "c 8"))},
			[]string{"ADDED c 8 [c 1]", "DELETED a 1 [] inferred"},
			[]string{"", "resourceVersion=4&watch=true", ""},
		},
		"event without rows": {
			[]response{respond(tableOf("4", "a 1", "b 3")), {body: scripted.Event("ADDED", tableOf("5")) + scripted.Event("ADDED", tableOf("6", "c 6")), stays: true}},
			[]string{"ADDED c 6 [c 1]"},
			[]string{"", "resourceVersion=4&watch=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.responses...)
				want := append([]string{"STARTED", "ADDED a 1 [a 1]", "ADDED b 3 [b 1]", "SYNCED"}, tc.want...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var got []string
				for change, err := range pods.Tables("").Follow(ctx, nil) {
					require.NoError(t, err, "after %v", got)
					text := string(change.Type)
					if row := change.Object; row != nil {
						text += fmt.Sprint(" ", row.Object.GetName(), " ", row.Object.GetResourceVersion(), " ", row.Cells)
						assert.Equal(t, !change.FinalStateUnknown, len(row.Columns) == 2)
					}
					if change.FinalStateUnknown {
						text += " inferred"
					}
					if got = append(got, text); len(got) == len(want) {
						break
					}
				}
				assert.Equal(t, want, got)
				synctest.Wait()
				assert.Equal(t, tc.queries, listWatchQueries(t, server)[:len(tc.queries)])
			})
		})
	}
}

func TestFollow_TablesNeedMetadata(t *testing.T) {
	pods, server := exchanging(t)
	err := drain(pods.Tables(metav1.IncludeNone).Follow(t.Context(), nil))
	require.ErrorContains(t, err, "use Tables(metav1.IncludeMetadata)")
	assert.Empty(t, server.seen())
}
