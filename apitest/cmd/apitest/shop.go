package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/streams"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

//go:embed shop.yaml
var shopManifests []byte

const (
	// deployInterval is the time between two images of the Deployment canary.
	deployInterval = 3 * time.Second
	// visitInterval is the time between two lines of a log.
	visitInterval = time.Second
	// maxOpening bounds the wait for the pods.
	maxOpening = 30 * time.Second
)

func shopObjects() (objects []*unstructured.Object, err error) {
	for obj, err := range unstructured.NewYAMLDecoder(bytes.NewReader(shopManifests)).All() {
		if err != nil {
			return nil, fmt.Errorf("read the shop: %w", err)
		}
		objects = append(objects, obj)
	}
	return objects, nil
}

// shopStreams are the programs of the shop's pods: every command prints itself, and every port serves a page.
func shopStreams() streams.Handlers {
	return streams.Handlers{
		Logs: visits,
		Exec: func(_ context.Context, session *streams.Session) error {
			_, err := fmt.Fprintf(session.Stdout, "%s: %s\n", session.Name, strings.Join(session.Command, " "))
			return err
		},
		PortForward: func(_ context.Context, pod streams.Pod, _ int, conn io.ReadWriteCloser) error {
			page := "Welcome to " + pod.Name + "\n"
			_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(page), page)
			return err
		},
		Proxy: func(_, _, name string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Welcome to", name) })
		},
	}
}

// visits returns a log with three lines and, with Follow, with a further line every second.
func visits(ctx context.Context, _ streams.Pod, opts streams.LogOptions) (io.Reader, error) {
	line := func() string { return time.Now().UTC().Format(time.RFC3339Nano) + " GET /prices 200\n" }
	existing := strings.Repeat(line(), 3)
	if !opts.Follow {
		return strings.NewReader(existing), nil
	}
	reader, writer := io.Pipe()
	go func() {
		for text := existing; ; text = line() {
			if _, err := io.WriteString(writer, text); err != nil {
				return
			}
			select {
			case <-ctx.Done():
				writer.CloseWithError(ctx.Err())
				return
			case <-time.After(visitInterval):
			}
		}
	}()
	return reader, nil
}

// openShop waits until the pods of the shop run.
func openShop(server *apitest.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxOpening)
	defer cancel()
	for _, workload := range [][2]string{{"deployments.apps", "web"}, {"deployments.apps", "canary"}, {"statefulsets.apps", "db"}} {
		resource, err := server.Client().Resource(ctx, workload[0])
		if err == nil {
			_, err = resource.Namespace("default").Wait(ctx, workload[1], dynamic.Ready())
		}
		if err != nil {
			return fmt.Errorf("open the shop: %w", err)
		}
	}
	return nil
}

// deployCanary gives the Deployment canary a new image at intervals, until stop is called. It ends when the Deployment is deleted.
func deployCanary(server *apitest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for version := 2; ; version++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(deployInterval):
			}
			patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"shop/web:%d"}]}}}}`, version)
			deployments, err := server.Client().Resource(ctx, "deployments.apps")
			if err == nil {
				_, err = deployments.Namespace("default").Patch(ctx, "canary", types.StrategicMergePatchType, patch, nil)
			}
			if err != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
