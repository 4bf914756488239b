package schema_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
)

func connect(t testing.TB) *transport.Conn {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func TestClient_Kind_EveryServedKind(t *testing.T) {
	conn := connect(t)
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	for name, c := range map[string]*schema.Client{
		"without a disk": schema.New(conn, nil), "first": schema.New(conn, &schema.Options{Dir: dir}), "warm": schema.New(conn, &schema.Options{Dir: dir}),
	} {
		count := 0
		for resource := range snapshot.Resources() {
			s, err := c.Kind(t.Context(), resource.GVK)
			if !assert.NoError(t, err, "%s: %s", name, resource.GVR) {
				continue
			}
			count++
			assert.Contains(t, s.GroupVersionKinds, resource.GVK)
			assert.Equal(t, "string", s.Field("kind").Type, resource.GVR)
			eachSchema(s, map[*schema.Schema]bool{}, func(s *schema.Schema) { assert.NoError(t, s.Unresolved, resource.GVR) })
		}
		assert.Greater(t, count, 50)
	}
}

// eachSchema passes a schema and the schemas in it, each once.
func eachSchema(s *schema.Schema, seen map[*schema.Schema]bool, use func(*schema.Schema)) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	use(s)
	for _, field := range s.Fields() {
		eachSchema(field, seen, use)
	}
	eachSchema(s.Items(), seen, use)
	values, _ := s.Values()
	eachSchema(values, seen, use)
}
