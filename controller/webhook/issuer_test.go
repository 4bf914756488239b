package webhook_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// issuerServer stores a Secret and a configuration, and rejects changes of the configuration "bad".
type issuerServer struct {
	*scripted.Server

	mu      sync.Mutex
	secret  map[string]any
	bundles []string // of the configuration "good"
}

func newIssuerServer() *issuerServer {
	s := &issuerServer{Server: scripted.New("/v1 secrets secret Secret - - create,get,update\n" +
		"cluster admissionregistration.k8s.io/v1 validatingwebhookconfigurations - ValidatingWebhookConfiguration")}
	const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
	for _, name := range []string{"bad", "good"} {
		s.Handle("GET "+configurations+name, scripted.JSON(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",`+
			`"metadata":{"name":"`+name+`","uid":"1","resourceVersion":"1"},"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://127.0.0.1"}}]}`))
	}
	s.Handle("PATCH "+configurations+"bad", scripted.Status(http.StatusForbidden, "Forbidden"))
	s.Handle("PATCH "+configurations+"good", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bundles = append(s.bundles, string(body))
		scripted.JSON(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"good"}}`)(w, r)
	})
	const secrets = "/api/v1/namespaces/shop/secrets"
	s.Handle("GET "+secrets+"/certificate", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.secret == nil {
			scripted.NotFound("certificate")(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(s.secret)
	})
	write := func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.secret = map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&s.secret)
		s.secret["metadata"] = map[string]any{"name": "certificate", "namespace": "shop", "resourceVersion": strconv.Itoa(s.Count())}
		_ = json.NewEncoder(w).Encode(s.secret)
	}
	s.Handle("POST "+secrets, write)
	s.Handle("PUT "+secrets+"/certificate", write)
	return s
}

// TestIssuer_FailingConfiguration issues and renews certificates while a configuration cannot be changed. A certificate of a new CA
// alone is withheld.
func TestIssuer_FailingConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newIssuerServer()
		client := dynamic.New(scripted.Connect(t, server, nil), nil)
		secret := types.NamespacedName{Namespace: "shop", Name: "certificate"}
		log, lines := controllertest.Logger()
		run := func() (served func() []byte, stop func()) {
			issuer := webhook.NewIssuer(client, secret, []string{"127.0.0.1"}, &webhook.IssuerOptions{
				Validating: []string{"bad", "good"}, Validity: time.Hour, Logger: log,
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- issuer.Run(ctx) }()
			served = func() []byte {
				current, err := issuer.Certificate().TLSConfig().GetCertificate(&tls.ClientHelloInfo{})
				require.NoError(t, err)
				require.True(t, time.Now().Before(current.Leaf.NotAfter))
				return current.Leaf.Raw
			}
			return served, func() { cancel(); require.ErrorIs(t, <-ended, context.Canceled) }
		}
		served, stop := run()
		time.Sleep(5 * time.Minute)
		first := served()
		server.mu.Lock()
		assert.NotEmpty(t, server.bundles)
		server.mu.Unlock()
		time.Sleep(45 * time.Minute)
		renewed := served()
		assert.NotEqual(t, first, renewed)

		server.mu.Lock()
		delete(server.secret["data"].(map[string]any), "ca.key") //nolint:forcetypeassert // as written
		server.mu.Unlock()
		time.Sleep(5 * time.Minute)
		assert.Equal(t, renewed, served(), "the CA is new")
		servedBySecond, stopSecond := run()
		time.Sleep(5 * time.Minute)
		assert.Equal(t, renewed, servedBySecond(), "the certificate of the former CA")
		stop()
		stopSecond()
		assert.Contains(t, lines()[0], "bad")
	})
}

// TestIssuer_WatchesSecret damages and deletes the Secret while an issuer runs. Without a watch, the issuer takes a minute each time.
func TestIssuer_WatchesSecret(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	secrets := controllertest.Resource(t, client, "secrets").Namespace(namespace)
	secret := types.NamespacedName{Namespace: namespace, Name: "certificate"}
	ctx, cancel := context.WithCancel(retry.WithRandom(t.Context(), func(time.Duration) time.Duration { return 0 }, nil))
	ended := make(chan error, 1)
	go func() { ended <- webhook.NewIssuer(client, secret, []string{"127.0.0.1"}, nil).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})

	limited, stop := context.WithTimeout(t.Context(), controllertest.Timeout/2)
	defer stop()
	isComplete := dynamic.Matches("the Secret is complete", func(obj *unstructured.Object) (bool, error) {
		data, _, err := unstructured.Get[map[string]any](obj, "data")
		return len(data) == 4 && data["ca.key"] != "", err
	})
	_, err := secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
	_, err = secrets.Patch(limited, secret.Name, types.MergePatchType, []byte(`{"data":{"ca.key":null}}`), nil)
	require.NoError(t, err)
	_, err = secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
	_, err = secrets.Delete(limited, secret.Name, nil)
	require.NoError(t, err)
	_, err = secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
}
