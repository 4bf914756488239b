package cel_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// ruled is a definition with rules of each kind.
const ruled = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ruleds.cel.example.com}
spec:
  group: cel.example.com
  scope: Cluster
  names: {plural: ruleds, kind: Ruled}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations:
        - {rule: "self.metadata.name != 'forbidden'", message: the name is forbidden}
        properties:
          spec:
            type: object
            required: [minimum]
            x-kubernetes-validations:
            - {rule: "self.minimum <= self.maximum", message: minimum above maximum, fieldPath: .minimum, reason: FieldValueForbidden}
            - {rule: "!has(self.text) || self.text.matches('^[a-z]+$')", messageExpression: "'not lower case: ' + self.text"}
            properties:
              minimum: {type: integer}
              maximum: {type: integer, default: 10}
              text: {type: string, maxLength: 20}
              fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed is immutable}]}
              items:
                type: array
                maxItems: 5
                items: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}
          status:
            type: object
            properties: {phase: {type: string, x-kubernetes-validations: [{rule: "self in ['A', 'B']"}]}}
`

// step is a write to the definition's objects.
type step struct {
	method, name, subresource, body string
}

func steps() []step {
	object := func(name, spec string) string {
		return fmt.Sprintf(`{apiVersion: cel.example.com/v1, kind: Ruled, metadata: {name: %s}, spec: %s}`, name, spec)
	}
	const post, put, patch = http.MethodPost, http.MethodPut, http.MethodPatch
	return []step{
		{post, "", "", object("one", `{minimum: 3, fixed: x, items: [1]}`)},
		{post, "", "", object("two", `{minimum: 30}`)},
		{post, "", "", object("forbidden", `{minimum: 3}`)},
		{post, "", "", object("two", `{minimum: 3, text: UPPER, items: [1, -1, 0]}`)},
		{post, "", "", object("two", `{minimum: text}`)},
		{post, "", "", object("two", `{text: UPPER}`)},
		{patch, "one", "", `{spec: {fixed: y}}`},
		{patch, "one", "", `{spec: {minimum: 4, items: [1, 2, -3]}}`},
		{patch, "one", "", `{spec: {minimum: 4}}`},
		{patch, "one", "status", `{status: {phase: C}}`},
		{patch, "one", "status", `{status: {phase: A}}`},
		{patch, "one", "", `{spec: {fixed: null}}`},
		{patch, "one", "", `{spec: {fixed: z}}`},
	}
}

func TestRules_AsRealServer(t *testing.T) {
	theirs := realserver.Connect(t)
	ours := realserver.New(connection(t))
	for _, server := range []*realserver.Server{theirs, ours} {
		require.NotNil(t, server.Write(t, http.MethodPost, definitionsPath, nil, object(t, ruled)).Object)
		require.Eventually(t, func() bool {
			return server.Write(t, http.MethodGet, "/apis/cel.example.com/v1/ruleds", nil, nil).Object != nil
		}, time.Minute, 50*time.Millisecond)
	}
	t.Cleanup(func() { theirs.Delete(t, definitionsPath+"/ruleds.cel.example.com") })
	rejected := 0
	for _, s := range steps() {
		want := send(t, theirs, s)
		got := send(t, ours, s)
		assert.Empty(t, realserver.Differences(want, got), "%v", s)
		if want.Object == nil {
			rejected++
		}
	}
	assert.Equal(t, 8, rejected)
}

func send(t *testing.T, server *realserver.Server, s step) realserver.Response {
	path := "/apis/cel.example.com/v1/ruleds"
	for _, part := range []string{s.name, s.subresource} {
		if part != "" {
			path += "/" + part
		}
	}
	return realserver.Normalize(server.Write(t, s.method, path, url.Values{}, object(t, s.body)))
}

// faultyRules are definitions' rules that the API server rejects.
func faultyRules() map[string]string {
	return map[string]string{
		"syntax":       `{rule: "self.minimum <="}`,
		"undefined":    `{rule: "self.undefined > 1"}`,
		"no bool":      `{rule: "self.minimum + 1"}`,
		"too costly":   `{rule: "self.words.all(a, self.words.all(b, a.contains(b)))"}`,
		"message":      `{rule: "self.minimum > 1", messageExpression: "self.minimum"}`,
		"old self":     `{rule: "self.minimum > 1", optionalOldSelf: true}`,
		"field path":   `{rule: "self.minimum > 1", fieldPath: .undefined}`,
		"two at once":  `{rule: "self.minimum > 'a'"}, {rule: "self.text.size()"}`,
		"valid":        `{rule: "self.minimum > 1"}`,
		"empty":        `{rule: " "}`,
		"line breaks":  `{rule: "self.minimum > 1\n&& true"}`,
		"wrong reason": `{rule: "self.minimum > 1", reason: Other}`,
	}
}

func TestDefinition_FaultyRulesAsRealServer(t *testing.T) {
	theirs := realserver.Connect(t)
	ours := realserver.New(connection(t))
	for name, rules := range faultyRules() {
		t.Run(name, func(t *testing.T) {
			definition := object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: faulties.cel.example.com},
spec: {group: cel.example.com, scope: Cluster, names: {plural: faulties, kind: Faulty}, versions: [{name: v1, served: true, storage: true,
schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {minimum: {type: integer}, text: {type: string},
words: {type: array, items: {type: string}}}, x-kubernetes-validations: [`+rules+`]}}}}}]}}`)
			query := url.Values{"dryRun": {"All"}}
			want := realserver.Normalize(theirs.Write(t, http.MethodPost, definitionsPath, query, definition))
			got := realserver.Normalize(ours.Write(t, http.MethodPost, definitionsPath, query, definition))
			assert.Equal(t, want.Causes, got.Causes)
			assert.Equal(t, want.Object == nil, got.Object == nil)
		})
	}
}

func connection(t *testing.T) *transport.Conn {
	server := apitest.NewServer(t, &apitest.Options{Rules: cel.Rules{}})
	conn, err := transport.Open(server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func object(t *testing.T, text string) map[string]any {
	content, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var obj map[string]any
	require.NoError(t, utiljson.Unmarshal(content, &obj))
	return obj
}

// TestStart_RejectsRulesOfObjects gives a rule that does not compile in Options.Objects, where no request reports it.
func TestStart_RejectsRulesOfObjects(t *testing.T) {
	start := func(text string) error {
		data, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		definition := &unstructured.Object{}
		require.NoError(t, definition.UnmarshalJSON(data))
		server, err := apitest.Start(&apitest.Options{Rules: cel.Rules{}, Objects: []*unstructured.Object{definition}})
		if err == nil {
			server.Close()
		}
		return err
	}
	require.NoError(t, start(ruled))
	require.ErrorContains(t, start(strings.Replace(ruled, "self == oldSelf", "self ===", 1)), "compilation failed")
}
