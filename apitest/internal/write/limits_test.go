package write_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/anykind/anykind/apitest/internal/testing/compare"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// jsonPatch returns a patch of n operations. N in an operation is its number.
func jsonPatch(n int, operation string) string {
	operations := make([]string, n)
	for i := range operations {
		operations[i] = strings.ReplaceAll(operation, "N", fmt.Sprint(i))
	}
	return "[" + strings.Join(operations, ",") + "]"
}

// joined returns one patch of the operations of several.
func joined(patches ...string) string {
	return strings.ReplaceAll(strings.Join(patches, ""), "][", ",")
}

const doubling = `{"op":"copy","from":"/data","path":"/data/N"}`

// expandingPatches are JSON patches that copy much, or nearly.
var expandingPatches = map[string]string{
	"doubling":                      jsonPatch(6, doubling),
	"just above the limit":          jsonPatch(4, `{"op":"copy","from":"/data/mebibyte","path":"/data/b"}`),
	"the limit":                     joined(jsonPatch(3, `{"op":"copy","from":"/data/mebibyte","path":"/data/b"}`), `[{"op":"remove","path":"/data/b"}]`),
	"escaped characters":            joined(`[{"op":"add","path":"/data/a","value":"`+strings.Repeat(`<\u00e9é`, 100_000)+`"}]`, jsonPatch(10, `{"op":"copy","from":"/data/a","path":"/data/N"}`)),
	"duplicate keys":                joined(`[{"op":"add","path":"/data/a","value":{"a":"`+strings.Repeat("x", 1000)+`","a": { } }}]`, jsonPatch(15, `{"op":"copy","from":"/data/a","path":"/data/a/N"}`)),
	"lists":                         joined(`[{"op":"add","path":"/x","value":[[1],null]}]`, jsonPatch(21, `{"op":"copy","from":"/x","path":"/x/-"}`)),
	"lists, negative index":         joined(`[{"op":"add","path":"/x","value":[[1],null]}]`, jsonPatch(21, `{"op":"copy","from":"/x","path":"/x/-1"}`)),
	"a replaced value":              joined(jsonPatch(1, doubling), `[{"op":"replace","path":"/data","value":{}}]`, jsonPatch(21, doubling)),
	"a moved value":                 joined(`[{"op":"move","from":"/data","path":"/x"}]`, jsonPatch(21, `{"op":"copy","from":"/x","path":"/x/N"}`)),
	"a failed test first":           joined(`[{"op":"test","path":"/data/mebibyte","value":"x"}]`, jsonPatch(6, doubling)),
	"a failed test later":           joined(jsonPatch(6, doubling), `[{"op":"test","path":"/data/mebibyte","value":"x"}]`),
	"a missing value first":         joined(`[{"op":"remove","path":"/data/none"}]`, jsonPatch(6, doubling)),
	"a missing value in between":    joined(jsonPatch(1, doubling), `[{"op":"copy","from":"/none/none","path":"/data/x"}]`, jsonPatch(6, doubling)),
	"an unknown operation":          joined(`[{"op":"double"}]`, jsonPatch(6, doubling)),
	"absent and null values":        joined(`[{"op":"add","path":"/x","value":null},{"op":"add","path":"/y"},{"op":"copy","from":"/x","path":"/z"},{"op":"copy","from":"/y","path":"/x"}]`, jsonPatch(6, doubling)),
	"more than 10,000 operations":   jsonPatch(10_001, `{"op":"add","path":"/data/a","value":"b"}`),
	"10,000 operations":             jsonPatch(10_000, `{"op":"add","path":"/data/a","value":"b"}`),
	"10,000 copies of few bytes":    joined(jsonPatch(9_999, `{"op":"copy","from":"/metadata/name","path":"/data/a"}`), `[{"op":"remove","path":"/data/a"}]`),
	"100 copies of many bytes":      jsonPatch(100, `{"op":"copy","from":"/data/mebibyte","path":"/data/a"}`),
	"a copied field that is absent": joined(`[{"op":"copy","from":"/none","path":"/y"}]`, jsonPatch(6, doubling)),
}

// laughs returns YAML with aliases: each of the levels has ten of the level below.
func laughs(levels int) string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for level := 1; level < levels; level++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", level, level, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", level-1), 10), ","))
	}
	return text
}

func playLimits(t *testing.T, s *compare.Server) map[string]string {
	t.Helper()
	s.Need(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {mebibyte: "+strings.Repeat("x", 1<<20-2)+"}")
	outcomes := map[string]string{}
	path := "/api/v1/namespaces/" + s.Namespace + "/configmaps"
	send := func(name, method, path string, query url.Values, mediaType, body string) {
		_, err := s.Requests.Send(t, method, path, query, mediaType, []byte(body))
		outcomes[name] = s.Outcome("", err)
		outcomes[name], _, _ = strings.Cut(outcomes[name], ": .") // the first unknown field is random
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Details != nil {
			for _, cause := range status.Status().Details.Causes { // the value of an invalid patch is too long to show
				outcomes[name] += "; " + string(cause.Type) + " " + cause.Message[:min(len(cause.Message), 200)]
			}
		}
	}
	for name, patch := range expandingPatches {
		for _, validation := range []string{"Ignore", "Warn"} {
			query := url.Values{"dryRun": {"All"}, "fieldValidation": {validation}}
			send(name+" "+validation, http.MethodPatch, path+"/big", query, "application/json-patch+json", patch)
		}
	}
	header := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, body := range map[string]string{
		"aliases": laughs(3), "excessive aliases": laughs(9),
		"aliases of text": "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n",
	} {
		query := url.Values{"dryRun": {"All"}, "fieldManager": {"test"}}
		send("YAML, "+name, http.MethodPost, path, query, "application/yaml", header+body)
		send("apply, "+name, http.MethodPatch, path+"/a", query, "application/apply-patch+yaml", header+body)
	}
	return outcomes
}

func TestPatch_LimitsAsOnTheServer(t *testing.T) {
	compare.Answers(t, nil, 40, playLimits)
}
