package bench_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dev/parity/discoverytest"
)

// BenchmarkResolve compares resolving a name: cold, without any discovery, and warm, with all of it. Requests and bytes
// are those of the server. Both sides keep their connection, and both count the server's allocations, which are equal.
func BenchmarkResolve(b *testing.B) {
	for _, count := range []int{70, 2000} {
		served := &discoverytest.Catalog{}
		served.AddBuiltIn()
		served.AddDefinitions(count)
		server := discoverytest.NewServer(b, served.Groups)
		b.Run(fmt.Sprintf("cold/%d/anykind", count), func(b *testing.B) {
			conn := discoverytest.Connect(b, server)
			cold(b, server, func(ctx context.Context) error {
				_, err := discoverytest.NewMapper(conn).Resource(ctx, "deploy")
				return err
			})
		})
		b.Run(fmt.Sprintf("cold/%d/client-go", count), func(b *testing.B) {
			client := discoverytest.ClientGoDiscovery(b, server)
			cold(b, server, func(context.Context) error {
				mapper, _ := discoverytest.ClientGoMapper(client)
				_, err := discoverytest.KubectlResolves(mapper, "deploy")
				return err
			})
		})
		for _, name := range []string{"deploy", "deployments.v1.apps"} {
			b.Run(fmt.Sprintf("warm/%d/%s/anykind", count, name), func(b *testing.B) {
				mapper := discoverytest.NewMapper(discoverytest.Connect(b, server))
				warm(b, func(ctx context.Context) error {
					_, err := mapper.Resource(ctx, name)
					return err
				})
			})
			b.Run(fmt.Sprintf("warm/%d/%s/client-go", count, name), func(b *testing.B) {
				mapper, _ := discoverytest.ClientGoMapper(discoverytest.ClientGoDiscovery(b, server))
				warm(b, func(context.Context) error {
					_, err := discoverytest.KubectlResolves(mapper, name)
					return err
				})
			})
		}
		benchmarkRESTMapping(b, server, count)
	}
}

// benchmarkRESTMapping resolves a kind with its version, as a controller does.
func benchmarkRESTMapping(b *testing.B, server *discoverytest.Server, count int) {
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	b.Run(fmt.Sprintf("warm/%d/RESTMapping/anykind", count), func(b *testing.B) {
		mapper := discoverytest.NewMapper(discoverytest.Connect(b, server)).RESTMapper(b.Context())
		warm(b, func(context.Context) error { return mapped(mapper, gk) })
	})
	b.Run(fmt.Sprintf("warm/%d/RESTMapping/client-go", count), func(b *testing.B) {
		mapper, _ := discoverytest.ClientGoMapper(discoverytest.ClientGoDiscovery(b, server))
		warm(b, func(context.Context) error { return mapped(mapper, gk) })
	})
}

func mapped(mapper meta.RESTMapper, gk schema.GroupKind) error {
	_, err := mapper.RESTMapping(gk, "v1")
	return err
}

func cold(b *testing.B, server *discoverytest.Server, resolve func(context.Context) error) {
	require.NoError(b, resolve(b.Context())) // the connection stands
	requests := server.Requests.Load()
	bytes := server.Bytes.Load()
	b.ReportAllocs()
	for b.Loop() {
		if err := resolve(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(server.Requests.Load()-requests)/float64(b.N), "requests/op")
	b.ReportMetric(float64(server.Bytes.Load()-bytes)/float64(b.N), "read-B/op")
}

func warm(b *testing.B, resolve func(context.Context) error) {
	require.NoError(b, resolve(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		if err := resolve(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
