package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// StoredValues returns the keys and values of etcd below a prefix, such as "/registry/example.com/gears/". Custom resources are stored
// as JSON.
func StoredValues(t testing.TB, prefix string) map[string][]byte {
	t.Helper()
	server, config := EtcdServer(t)
	end := []byte(prefix)
	end[len(end)-1]++
	request, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end})
	if err != nil {
		t.Fatalf("read etcd: %v", err)
	}
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	response, err := client.Post(server+"/v3/kv/range", "application/json", bytes.NewReader(request)) //nolint:noctx // of a test on loopback
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

// EtcdData returns the folder of etcd's data. It may be replaced while etcd is stopped.
func EtcdData(t testing.TB) string {
	t.Helper()
	return filepath.Join(dir(t), Etcd)
}

// EtcdServer returns the URL of etcd and a configuration with the sandbox's certificates.
func EtcdServer(t testing.TB) (url string, config *tls.Config) {
	t.Helper()
	var etcd component
	for _, one := range status(t).Components {
		if one.Name == Etcd {
			etcd = one
		}
	}
	authority, err := os.ReadFile(etcd.Credentials.CA)
	if err != nil {
		t.Fatalf("read etcd's certificates: %v", err)
	}
	certificate, err := tls.LoadX509KeyPair(etcd.Credentials.Cert, etcd.Credentials.Key)
	if err != nil {
		t.Fatalf("read etcd's certificates: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return etcd.URL, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
}
