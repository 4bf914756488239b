package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/transport"
)

// memory is the memory of a process or of a kind, in bytes, and its goroutines.
type memory struct{ Heap, Stacks, Goroutines float64 }

// measure prints the memory of a process with all watches.
func (s *settings) measure(ctx context.Context) error {
	if s.heapProfile != "" {
		runtime.MemProfileRate = 1
	}
	config, err := transport.Load(ctx, &transport.LoadOptions{Path: s.kubeconfig})
	if err != nil {
		return err
	}
	if s.process == streamsProcess {
		err = openStreams(ctx, config, s.many)
	} else {
		err = fillCache(ctx, config)
	}
	if err != nil {
		return err
	}
	time.Sleep(s.wait)
	runtime.GC() // the next collection frees the objects of pools
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m := memory{float64(stats.HeapAlloc), float64(stats.StackInuse), float64(runtime.NumGoroutine())}
	if s.heapProfile != "" {
		if err := writeProfiles(s.heapProfile); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// writeProfiles writes profiles of the heap and, beside it, of the goroutines.
func writeProfiles(path string) error {
	for name, path := range map[string]string{"heap": path, "goroutine": path + ".goroutines"} {
		file, err := os.Create(path) //nolint:gosec // of the flag
		if err != nil {
			return err
		}
		if err := errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func fillCache(ctx context.Context, config *transport.Config) error {
	client, err := dynamic.Connect(ctx, config)
	if err != nil {
		return err
	}
	cache := inventory.NewCache(client, nil)
	go func() { panic(cache.Run(ctx)) }()
	return cache.WaitForSync(ctx)
}

// openStreams opens the watches of the definitions, each with a goroutine that reads into a small buffer.
func openStreams(ctx context.Context, config *transport.Config, count int) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	certificate, err := tls.X509KeyPair(config.CertData, []byte(config.KeyData.Reveal()))
	if err != nil {
		return fmt.Errorf("a client certificate in the kubeconfig is required: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}
	for i := range count {
		url := fmt.Sprintf("%s/apis/%s/v1/%s?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=590",
			config.Server, group(i), resource(i))
		body, err := openStream(ctx, client, url)
		if err != nil {
			return err
		}
		go func() {
			buffer := make([]byte, 512)
			var err error
			for err == nil {
				_, err = body.Read(buffer)
			}
			panic(err)
		}()
	}
	return nil
}

// openStream opens a watch, as soon as the server is ready to serve the resource.
func openStream(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		switch response.StatusCode {
		case http.StatusOK:
			return response.Body, nil
		case http.StatusTooManyRequests:
			_ = response.Body.Close()
			time.Sleep(time.Second)
		default:
			return nil, fmt.Errorf("%s: %s", url, response.Status)
		}
	}
}
