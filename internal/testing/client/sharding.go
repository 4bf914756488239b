package client

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
)

// NeedSharding skips the test unless the server selects the objects of a shard.
func NeedSharding(t testing.TB, c *dynamic.Client) {
	t.Helper()
	response, err := Resource(t, c, "namespaces").Conn().Do(t.Context(), &transport.Request{
		Method: http.MethodGet, Path: "/api/v1/namespaces",
		Query: url.Values{"limit": {"1"}, "shardSelector": {shard.Split(shard.UID, 2)[0].String()}},
	})
	if err != nil {
		t.Fatalf("list namespaces of a shard: %v", err)
	}
	defer response.Body.Close()
	var list struct{ Metadata map[string]any }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatalf("list namespaces of a shard: %v", err)
	}
	if list.Metadata["shardInfo"] == nil {
		t.Skip("the server lacks the feature gate ShardedListAndWatch: Kubernetes 1.36 has it with SANDBOX_FLAGS='--feature-gates ShardedListAndWatch=true'")
	}
}

// WithoutSharding makes the server ignore the parameter of shards.
func WithoutSharding(cfg *transport.Config) {
	wrap := cfg.WrapTransport
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(next)
		}
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			query.Del("shardSelector")
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
			return next.RoundTrip(r)
		})
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
