// Package explain_test compares explanations of package schema with those of kubectl's own code.
package explain_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kubectl "k8s.io/kubectl/pkg/explain/v2"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
)

// TestExplain_SameTextAsKubectl compares the text of every kind of a real server with definitions of public projects: plain,
// recursive, and of some of its fields. ANYKIND_EXPLAIN_FIELDS is the number of fields of each kind, all if it is "all": then there
// are 300 definitions.
func TestExplain_SameTextAsKubectl(t *testing.T) {
	conn := connect(t)
	send := client.Send(conn)
	definitions := 100
	if os.Getenv("ANYKIND_EXPLAIN_FIELDS") != "" {
		definitions = 300
	}
	cluster.Define(t, send, append(corpus.Definitions(t, definitions), corpus.Synthetic(t)...))
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	c := &comparison{ours: schema.New(conn, nil), theirs: newKubectl(t), send: send, documents: map[string]map[string]any{}}
	count := 5
	if text := os.Getenv("ANYKIND_EXPLAIN_FIELDS"); text == "all" {
		count = -1
	} else if text != "" {
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for resource := range snapshot.Resources() {
		if resource.GVK.Kind != "" {
			c.compareKind(t, resource, count)
		}
	}
	t.Logf("%d kinds, %d texts, %d different", c.kinds, c.texts, c.different)
	assert.Greater(t, c.kinds, 150)
}

// comparison compares explanations, and counts them.
type comparison struct {
	ours      *schema.Client
	theirs    kubectl.Generator
	send      cluster.SendFunc
	documents map[string]map[string]any // decoded, by path

	kinds, texts, different int
}

// compareKind compares the texts of a kind and of count of its fields, or of all for a negative count.
func (c *comparison) compareKind(t *testing.T, resource *discovery.Resource, count int) {
	c.kinds++
	c.compare(t, resource, nil, &schema.ExplainOptions{})
	c.compare(t, resource, nil, &schema.ExplainOptions{Recursive: true})
	c.compare(t, resource, nil, &schema.ExplainOptions{Recursive: true, MaxDepth: 2})
	whole, err := c.ours.Explain(t.Context(), resource.GVK, nil, &schema.ExplainOptions{Recursive: true})
	if !assert.NoError(t, err) {
		return
	}
	paths := appendPaths(nil, nil, whole.Fields)
	if count >= 0 {
		random := rand.New(rand.NewPCG(1, uint64(len(paths)))) //nolint:gosec // the same fields in each run
		random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		paths = paths[:min(count, len(paths))]
	}
	for i, path := range paths {
		c.compare(t, resource, path, &schema.ExplainOptions{Recursive: i%2 == 1})
	}
}

func appendPaths(paths [][]string, path []string, fields []*schema.Field) [][]string {
	for _, field := range fields {
		below := append(slices.Clip(path), field.Name)
		paths = appendPaths(append(paths, below), below, field.Fields)
	}
	return paths
}

func (c *comparison) compare(t *testing.T, resource *discovery.Resource, path []string, opts *schema.ExplainOptions) {
	c.texts++
	var want bytes.Buffer
	err := c.theirs.Render("plaintext", c.document(t, resource.GVR.GroupVersion()), resource.GVR, path, opts.Recursive, opts.MaxDepth, &want)
	require.NoError(t, err, "%s %s", resource.GVR, path)
	explanation, err := c.ours.Explain(t.Context(), resource.GVK, path, opts)
	if !assert.NoError(t, err) {
		return
	}
	var got bytes.Buffer
	require.NoError(t, explanation.WriteText(&got, nil))
	if want.String() != got.String() {
		if c.different++; c.different < 10 {
			assert.Equal(t, want.String(), got.String(), "%s %s, kubectl's (expected)", resource.GVR, path)
		} else {
			t.Fail()
		}
	}
}

// document returns the decoded OpenAPI document of a group version.
func (c *comparison) document(t *testing.T, gv runtimeschema.GroupVersion) map[string]any {
	t.Helper()
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	if c.documents[path] == nil {
		text, err := c.send(t.Context(), http.MethodGet, path, "")
		require.NoError(t, err)
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &document))
		c.documents[path] = document
	}
	return c.documents[path]
}

// newKubectl returns kubectl's generator with its template, which the package does not export.
func newKubectl(t *testing.T) kubectl.Generator {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "k8s.io/kubectl/pkg/explain/v2").Output()
	require.NoError(t, err)
	template, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "templates", "plaintext.tmpl"))
	require.NoError(t, err)
	generator := kubectl.NewGenerator()
	require.NoError(t, generator.AddTemplate("plaintext", string(template)))
	return generator
}

func connect(t *testing.T) *transport.Conn {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}
