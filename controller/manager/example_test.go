package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/anykind/anykind/controller/manager"
)

func ExampleManager() {
	m := manager.New(nil)
	ctx, cancel := context.WithCancel(context.Background())
	m.AddServer("probes", func(ctx context.Context) error { // manager.HTTPServer(&http.Server{Addr: ":8081", Handler: m.Probes()}, nil)
		<-ctx.Done()
		return nil
	})
	m.AddCheck("queue", func(context.Context) error { return nil })
	m.AddController("shops", func(ctx context.Context) error { // controller.Run(ctx, shops, reconcile, nil)
		ready := httptest.NewRecorder()
		m.Probes().ServeHTTP(ready, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		fmt.Print(ready.Body)
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(m.Run(ctx))
	// Output:
	// [+]queue ok
	// ready
	// run a manager: context canceled
}
