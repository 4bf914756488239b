package write_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
)

// TestDeleteCollection_PagesAsOnTheServer compares a deletecollection with the options of a list.
func TestDeleteCollection_PagesAsOnTheServer(t *testing.T) {
	play := func(t *testing.T, s *compare.Server) map[string]string {
		responses := map[string]string{}
		path := "/api/v1/namespaces/" + s.Namespace + "/configmaps"
		send := func(name, query string) map[string]any {
			values, err := url.ParseQuery(query)
			require.NoError(t, err)
			response, err := s.Requests.Send(t, "DELETE", path, values, "application/json", nil)
			var names []string
			for _, item := range nested.Maps(response.Object, "items") {
				names = append(names, nested.String(item, "metadata", "name"))
			}
			metadata := nested.Map(response.Object, "metadata")
			responses[name] = fmt.Sprint(names, " continues: ", metadata["continue"] != nil, ", remaining: ", metadata["remainingItemCount"], ", ", s.Outcome("", err))
			return metadata
		}
		for i := range 7 {
			s.Need(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d, labels: {half: %q}}", i, fmt.Sprint(i%2)))
		}
		const selector = "&labelSelector=half"
		send("dry run", "limit=2&dryRun=All"+selector)
		send("unlimited dry run", "dryRun=All&limit=-1"+selector)
		send("unsupported match", "resourceVersionMatch=Exact")
		send("match without a version", "resourceVersion=1&resourceVersionMatch=Some")
		send("initial events", "sendInitialEvents=true")
		first := send("limit", "limit=2"+selector)
		send("continued", "limit=2"+selector+"&continue="+url.QueryEscape(fmt.Sprint(first["continue"])))
		send("limit of selected", "limit=1&labelSelector=half%3D1")
		send("rest", strings.TrimPrefix(selector, "&"))
		return responses
	}
	compare.Responses(t, nil, 9, func(t *testing.T, s *compare.Server) map[string]string {
		responses := play(t, s)
		assert.Contains(t, responses["limit"], "[m0 m1]")
		return responses
	})
}
