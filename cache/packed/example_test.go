package packed_test

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// configMaps is a source of one object. A program uses a handle: dynamic.As[unstructured.Lazy](configMaps).
type configMaps struct{}

func (configMaps) Path(string) (string, error) { return "/api/v1/configmaps", nil }

func (configMaps) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Lazy], error] {
	return func(yield func(dynamic.Change[unstructured.Lazy], error) bool) {
		obj, err := unstructured.DecodeLazy([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"data":{"port":"8080"}}`))
		if !yield(dynamic.Change[unstructured.Lazy]{Type: watch.Added, Object: obj}, err) ||
			!yield(dynamic.Change[unstructured.Lazy]{Type: dynamic.Synced}, nil) {
			return
		}
		<-ctx.Done()
		yield(dynamic.Change[unstructured.Lazy]{}, ctx.Err())
	}
}

func ExampleNew() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(configMaps{}, &cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()})
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	web, _ := c.Get("shop", "web")
	port, _, err := unstructured.Get[string](web, "data", "port")
	fmt.Println(port, err)
	// Output: 8080 <nil>
}
