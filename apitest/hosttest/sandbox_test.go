package hosttest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// sandbox starts a server and returns a folder that looks to package internal/testing/cluster like that of the sandbox: with a
// kubeconfig for its three users, and a socket by which tests restart and compact the server.
func sandbox(t *testing.T) (folder string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "hosttest") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	server := apitest.NewServer(t, &apitest.Options{
		OnNotValidated: func(apitest.Request, string) {}, RBAC: true, ShardedListAndWatch: true, Controllers: apitest.GarbageCollection | apitest.NamespaceDeletion, Objects: limitedRole(),
		Users: []apitest.User{{Name: "token-admin", Groups: []string{"system:masters"}, Token: "token"}, {Name: "limited", Token: "limited"}},
	})
	path := filepath.Join(folder, "kubeconfig")
	require.NoError(t, os.WriteFile(path, kubeconfig(t, server), 0o600))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(folder, "control.sock"))
	require.NoError(t, err)
	control := &http.Server{Handler: controlHandler(t, server, path), ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = control.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = control.Close()
		<-served
	})
	return folder
}

// kubeconfig has the contexts that package internal/testing/cluster promises.
func kubeconfig(t *testing.T, server *apitest.Server) []byte {
	t.Helper()
	data, err := server.KubeconfigData()
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(data, &config))
	certificate, key, err := server.ClientCertificate("admin", "system:masters")
	require.NoError(t, err)
	users := map[string]any{
		"admin": map[string]any{"client-certificate-data": certificate, "client-key-data": key},
		"token": map[string]any{"token": "token"}, "limited": map[string]any{"token": "limited"},
	}
	var named, contexts []any
	for name, user := range users {
		named = append(named, map[string]any{"name": name, "user": user})
		contexts = append(contexts, map[string]any{"name": name, "context": map[string]any{"cluster": "apitest", "user": name}})
	}
	config["users"] = named
	config["contexts"] = contexts
	config["current-context"] = "admin"
	data, err = yaml.Marshal(config)
	require.NoError(t, err)
	return data
}

// limitedRole returns the role of the user limited.
func limitedRole() []*unstructured.Object {
	const group = "rbac.authorization.k8s.io"
	return []*unstructured.Object{{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Role", "metadata": map[string]any{"name": "limited", "namespace": "default"},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get", "list", "watch"}}},
	}}, {Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "limited", "namespace": "default"},
		"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": "limited"},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": "limited"}},
	}}}
}

// controlHandler handles the requests of package internal/testing/cluster to the sandbox.
func controlHandler(t *testing.T, server *apitest.Server, kubeconfig string) http.Handler {
	t.Helper()
	kubectl, version := cluster.Kubectl(t), "v"+cluster.Version(t).String()
	fail := func(w http.ResponseWriter, err error) {
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		components := []map[string]string{{"Name": "etcd", "State": "running"}, {"Name": "kube-apiserver", "State": "running"}}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Kubernetes": version, "Kubeconfigs": []string{kubeconfig}, "Kubectl": kubectl, "Components": components,
		})
	})
	mux.HandleFunc("POST /compact", func(http.ResponseWriter, *http.Request) { server.Compact() })
	mux.HandleFunc("POST /restart", func(w http.ResponseWriter, r *http.Request) {
		if component := r.URL.Query().Get("component"); component != "kube-apiserver" {
			fail(w, fmt.Errorf("apitest has no %s", component))
		} else if err := server.Restart(200 * time.Millisecond); err != nil {
			fail(w, err)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fail(w, fmt.Errorf("apitest cannot %s", r.URL.Path)) })
	return mux
}
