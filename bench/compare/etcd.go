//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// etcd is where the sandbox's API server keeps its objects. A server that shares its processors with everybody else makes
// some hundred changes a second, since it admits and validates each and notes who owns what; what stands in etcd comes to
// its watches at any rate.
type etcd struct {
	client *http.Client
	url    string
}

// openEtcd asks the sandbox in whose command we run where its etcd is.
func openEtcd(ctx context.Context) (*etcd, error) {
	dir := os.Getenv("ANYKIND_SANDBOX")
	if dir == "" {
		return nil, errors.New("a thousand changes a second are written to the sandbox's etcd: run `make bench`")
	}
	socket := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "control.sock"))
	}}
	var status struct {
		Components []struct {
			Name, URL   string
			Credentials struct{ CA, Cert, Key string }
		}
	}
	if err := ask(ctx, &http.Client{Transport: socket}, "http://sandbox/status", nil, &status); err != nil {
		return nil, err
	}
	for _, c := range status.Components {
		if c.Name != "etcd" {
			continue
		}
		trust, err := clientTLS(c.Credentials.CA, c.Credentials.Cert, c.Credentials.Key)
		if err != nil {
			return nil, fmt.Errorf("open etcd: %w", err)
		}
		return &etcd{url: c.URL, client: &http.Client{Transport: &http.Transport{TLSClientConfig: trust, MaxIdleConnsPerHost: workers}}}, nil
	}
	return nil, fmt.Errorf("the sandbox in %s has no etcd", dir)
}

func clientTLS(ca, cert, key string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}

func (e *etcd) close() { e.client.CloseIdleConnections() }

// valuesPage is how many values are read at once.
const valuesPage = 500

// values are those of all keys that begin with prefix, in the order of the keys.
func (e *etcd) values(ctx context.Context, prefix string) ([][]byte, error) {
	first, end := []byte(prefix), []byte(prefix)
	end[len(end)-1]++
	var values [][]byte
	for {
		var page struct {
			Kvs  []struct{ Key, Value []byte }
			More bool
		}
		question := map[string]any{"key": first, "range_end": end, "limit": valuesPage}
		if err := ask(ctx, e.client, e.url+"/v3/kv/range", question, &page); err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			values = append(values, kv.Value)
		}
		if !page.More {
			return values, nil
		}
		first = append(page.Kvs[len(page.Kvs)-1].Key, 0)
	}
}

func (e *etcd) put(ctx context.Context, key string, value []byte) error {
	var answer struct{}
	return ask(ctx, e.client, e.url+"/v3/kv/put", map[string][]byte{"key": []byte(key), "value": value}, &answer)
}

// ask reads the answer to a GET, or with a body to a POST of that as JSON.
func ask(ctx context.Context, client *http.Client, url string, body, answer any) error {
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, why)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
