package bench_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	cgrestmapper "k8s.io/client-go/restmapper"

	"github.com/anykind/anykind/dev/parity/discoverytest"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
)

// BenchmarkResolveFromDisk resolves a name as a new process does, with kubectl's disk cache alone. Neither side may send
// a request.
func BenchmarkResolveFromDisk(b *testing.B) {
	for _, count := range []int{70, 2000} {
		served := &discoverytest.Catalog{}
		served.AddBuiltIn()
		served.AddDefinitions(count)
		server := discoverytest.NewServer(b, served.Groups)
		conn := discoverytest.Connect(b, server)
		dir := b.TempDir()
		_, err := discovery.New(conn, &discovery.Options{CacheDir: dir}).Refresh(b.Context())
		require.NoError(b, err)
		b.Run(fmt.Sprintf("%d/anykind", count), func(b *testing.B) {
			cold(b, server, func(ctx context.Context) error {
				mapper := restmapper.New(discovery.New(conn, &discovery.Options{CacheDir: dir}))
				_, err := mapper.Resource(ctx, "deploy")
				return err
			})
		})
		b.Run(fmt.Sprintf("%d/client-go", count), func(b *testing.B) {
			cold(b, server, func(context.Context) error {
				cached := discoverytest.ClientGoCached(b, conn.Server(), dir)
				mapper := cgrestmapper.NewShortcutExpander(cgrestmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
				_, err := discoverytest.KubectlResolves(mapper, "deploy")
				return err
			})
		})
	}
}
