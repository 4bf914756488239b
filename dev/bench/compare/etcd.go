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

// etcd is the sandbox's etcd. The API server only writes some hundred changes a second on a shared machine, because it admits and
// validates each change and updates managedFields. Changes in etcd reach the server's watches at any rate.
type etcd struct {
	client *http.Client
	url    string
}

// openEtcd connects to the etcd of this command's sandbox.
func openEtcd(ctx context.Context) (*etcd, error) {
	dir := os.Getenv("ANYKIND_SANDBOX")
	if dir == "" {
		return nil, errors.New("missing ANYKIND_SANDBOX, whose etcd is written to (run `make bench`)")
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
	if err := requestJSON(ctx, &http.Client{Transport: socket}, "http://sandbox/status", nil, &status); err != nil {
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

// valuesPage is the number of values of a request.
const valuesPage = 500

// values returns the values of all keys with the prefix, in order.
func (e *etcd) values(ctx context.Context, prefix string) ([][]byte, error) {
	first := []byte(prefix)
	end := []byte(prefix)
	end[len(end)-1]++
	var values [][]byte
	for {
		var page struct {
			Kvs  []struct{ Key, Value []byte }
			More bool
		}
		body := map[string]any{"key": first, "range_end": end, "limit": valuesPage}
		if err := requestJSON(ctx, e.client, e.url+"/v3/kv/range", body, &page); err != nil {
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
	var result struct{}
	return requestJSON(ctx, e.client, e.url+"/v3/kv/put", map[string][]byte{"key": []byte(key), "value": value}, &result)
}

func (e *etcd) remove(ctx context.Context, key string) error {
	var result struct{}
	return requestJSON(ctx, e.client, e.url+"/v3/kv/deleterange", map[string][]byte{"key": []byte(key)}, &result)
}

// requestJSON sends a GET, or a POST of body as JSON, and decodes the response.
func requestJSON(ctx context.Context, client *http.Client, url string, body, result any) error {
	method := http.MethodGet
	text := []byte(nil)
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
		message, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, message)
	}
	return json.NewDecoder(response.Body).Decode(result)
}
