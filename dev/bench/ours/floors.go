//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// floor does tasks at the lowest possible cost with net/http: the same requests with the same headers, without validation,
// retries and API errors. The bodies are decoded to the same objects.
type floor struct {
	http    *http.Client
	pods    string // URL
	accept  string
	builder builder
	body    bytes.Buffer // of the last response
}

// newFloor returns a floor over its own connection, configured like anykind's.
func newFloor(cfg *transport.Config, path string) (*floor, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CAData)
	certificate, err := tls.X509KeyPair(cfg.CertData, []byte(cfg.KeyData.Reveal()))
	if err != nil {
		return nil, err
	}
	return &floor{
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			DisableCompression: cfg.DisableCompression,
			ForceAttemptHTTP2:  true,
		}},
		pods:   cfg.Server + path,
		accept: "application/json",
	}, nil
}

// open sends a request and returns the body of its response.
func (f *floor) open(ctx context.Context, method, target string, body []byte) (io.ReadCloser, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"Accept": {f.accept}, "User-Agent": {"anykind/devel (linux/amd64)"}}
	if body != nil {
		request.Header["Content-Type"] = []string{"application/json"}
	}
	response, err := f.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, target, response.Status)
	}
	return response.Body, nil
}

// send sends a request and reads its response to the end.
func (f *floor) send(ctx context.Context, method, target string, body []byte) error {
	opened, err := f.open(ctx, method, target, body)
	if err != nil {
		return err
	}
	defer opened.Close()
	f.body.Reset()
	_, err = f.body.ReadFrom(opened)
	return err
}

// calls is the floor of calls: objects are encoded and decoded by anykind.
func (f *floor) calls(ctx context.Context, m *measure.Meter) error {
	pods := make([]*unstructured.Object, m.Count)
	write := func(i int, method, target string) error {
		body, err := unstructured.Encode(pods[i])
		if err != nil {
			return err
		}
		if err = f.send(ctx, method, target, body); err == nil {
			pods[i], err = unstructured.Decode(f.body.Bytes())
		}
		return err
	}
	err := m.Calls("create", m.Count, func(i int) error {
		pods[i] = &unstructured.Object{Object: measure.NewPod()}
		return write(i, http.MethodPost, f.pods)
	})
	if err != nil {
		return err
	}
	err = m.Calls("get", m.Count, func(i int) (err error) {
		if err = f.send(ctx, http.MethodGet, f.pods+"/"+pods[i].GetName(), nil); err == nil {
			pods[i], err = unstructured.Decode(f.body.Bytes())
		}
		return err
	})
	if err != nil {
		return err
	}
	err = m.Calls("update", m.Count, func(i int) error {
		pods[i].SetAnnotations(map[string]string{"changed": "yes"})
		return write(i, http.MethodPut, f.pods+"/"+pods[i].GetName())
	})
	if err != nil {
		return err
	}
	for _, pod := range pods {
		m.See(pod.GetName())
		if err := f.send(ctx, http.MethodDelete, f.pods+"/"+pod.GetName()+"?gracePeriodSeconds=0", nil); err != nil {
			return err
		}
	}
	return nil
}

// list is the floor of list: the same pages, in sequence.
func (f *floor) list(ctx context.Context, m *measure.Meter) error {
	for next := ""; ; {
		meta, err := f.page(ctx, "?limit=500"+next, func(pod *unstructured.Object) { m.See(pod.GetName()) })
		if err != nil {
			return err
		}
		token, _ := meta["continue"].(string)
		if token == "" {
			return nil
		}
		next = "&continue=" + url.QueryEscape(token)
	}
}

// whole is the floor of whole: a single response, and all objects in memory.
func (f *floor) whole(ctx context.Context, m *measure.Meter) error {
	var pods []*unstructured.Object
	if _, err := f.page(ctx, "", func(pod *unstructured.Object) { pods = append(pods, pod) }); err != nil {
		return err
	}
	for _, pod := range pods {
		m.See(pod.GetName())
	}
	return nil
}

// page sends a list request, calls each with every item and returns the list's metadata.
func (f *floor) page(ctx context.Context, query string, each func(*unstructured.Object)) (map[string]any, error) {
	body, err := f.open(ctx, http.MethodGet, f.pods+query, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return f.builder.buildList(body, "v1", "Pod", each)
}
