package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

// StoredValues returns the keys and values of etcd below a prefix, such as "/registry/example.com/gears/". Custom resources are stored
// as JSON.
func StoredValues(t testing.TB, prefix string) map[string][]byte {
	t.Helper()
	var etcd component
	for _, one := range status(t).Components {
		if one.Name == Etcd {
			etcd = one
		}
	}
	end := []byte(prefix)
	end[len(end)-1]++
	request, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end})
	if err != nil {
		t.Fatalf("read etcd: %v", err)
	}
	client := etcdClient(t, etcd.Credentials)
	defer client.CloseIdleConnections()
	response, err := client.Post(etcd.URL+"/v3/kv/range", "application/json", bytes.NewReader(request)) //nolint:noctx // of a test on loopback
	if err != nil {
		t.Fatalf("read etcd: %v", err)
	}
	defer response.Body.Close()
	var found struct {
		KVs []struct{ Key, Value []byte } `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("read etcd: %s: %v", response.Status, err)
	}
	values := make(map[string][]byte, len(found.KVs))
	for _, one := range found.KVs {
		values[string(one.Key)] = one.Value
	}
	return values
}

// etcdClient returns a client with the sandbox's certificates.
func etcdClient(t testing.TB, files credentials) *http.Client {
	t.Helper()
	authority, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatalf("read etcd's certificates: %v", err)
	}
	certificate, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatalf("read etcd's certificates: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &http.Client{Timeout: callTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	}}}
}
