package write_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/internal/testing/race"
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
		send(name, http.MethodPatch, path+"/big", url.Values{"dryRun": {"All"}}, "application/json-patch+json", patch)
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

// TestWrites_TextOfAliasesIsBounded runs on apitest only: the real server has no limit and decodes the text of each alias.
func TestWrites_TextOfAliasesIsBounded(t *testing.T) {
	s := compare.Apitest(t, nil)
	aliases := "metadata: {name: a}\na: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 60) + "]\n"
	configMaps := "/api/v1/namespaces/" + s.Namespace + "/configmaps"
	tests := map[string]struct{ method, path, mediaType, header string }{
		"create": {http.MethodPost, configMaps, "application/yaml", "apiVersion: v1\nkind: ConfigMap\n"},
		"apply":  {http.MethodPatch, configMaps + "/a", "application/apply-patch+yaml", "apiVersion: v1\nkind: ConfigMap\n"},
		"delete": {http.MethodDelete, configMaps + "/a", "application/yaml", "apiVersion: v1\nkind: DeleteOptions\n"},
		"review": {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/yaml", "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Requests.Send(t, test.method, test.path, url.Values{"fieldManager": {"test"}}, test.mediaType, []byte(test.header+aliases))
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, "yaml: document contains excessive aliasing")
			assert.True(t, apierrors.IsBadRequest(err), "%v", err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
		})
	}
}

func TestCreate_ProtobufIsBounded(t *testing.T) {
	s := compare.Apitest(t, nil)
	message := func(number byte, content string) string {
		return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content)))) + content
	}
	variable := message(7, message(3, message(4, ""))) // env: [{valueFrom: {secretKeyRef: {}}}]
	pod := message(2, strings.Repeat(message(2, strings.Repeat(variable, 1000)), 500))
	body := "k8s\x00" + message(1, message(1, "v1")+message(2, "Pod")) + message(2, pod)
	_, err := s.Requests.Send(t, http.MethodPost, "/api/v1/namespaces/"+s.Namespace+"/pods", nil, "application/vnd.kubernetes.protobuf", []byte(body))
	require.EqualError(t, err, "Request entity too large: decode Pod: limit of the decoded object is 314572800")
	assert.True(t, apierrors.IsRequestEntityTooLargeError(err), "%v", err)
}

func TestPatch_LimitsAsOnTheServer(t *testing.T) {
	race.Skip(t)
	compare.Responses(t, nil, 25, playLimits)
}

// TestCompare_StoredSize compares objects near etcd's limit of 1.5 MiB with a real server.
func TestCompare_StoredSize(t *testing.T) {
	race.Skip(t)
	compare.Responses(t, nil, 9, func(t *testing.T, s *compare.Server) map[string]string {
		responses := map[string]string{}
		const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		role := func(name string, bytes int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},
				"rules":[{"apiGroups":[""],"verbs":["get"],"resources":[%q]}]}`, name, strings.Repeat("a", bytes))
		}
		for _, bytes := range []int{1_560_000, 1_600_000, 2_600_000} {
			name := fmt.Sprint("size-", bytes)
			for _, one := range []struct{ verb, method, mediaType, path string }{
				{"create", "POST", "application/json", path},
				{"update", "PUT", "application/json", path + "/small-" + name},
				{"patch", "PATCH", "application/merge-patch+json", path + "/small-" + name},
				{"apply", "PATCH", "application/apply-patch+yaml", path + "/" + name},
			} {
				var query url.Values
				target := name
				if one.verb != "create" && one.verb != "apply" {
					target = "small-" + name
					_, err := s.Requests.Send(t, "POST", path, nil, "application/json", role(target, 1))
					require.NoError(t, err)
				}
				if one.verb == "apply" {
					query = url.Values{"fieldManager": {"test"}}
				}
				_, err := s.Requests.Send(t, one.method, one.path, query, one.mediaType, role(target, bytes))
				responses[one.verb+" "+name] = outcomeOfSize(err)
				_, _ = s.Requests.Send(t, "DELETE", path+"/"+target, nil, "application/json", nil)
			}
		}
		return responses
	})
}

// outcomeOfSize returns the code and reason of an error. Its text has the size of the server's encoding.
func outcomeOfSize(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Sprint(err)
	}
	text, _, _ := strings.Cut(status.Status().Message, "(")
	return fmt.Sprint(status.Status().Code, status.Status().Reason, text)
}
