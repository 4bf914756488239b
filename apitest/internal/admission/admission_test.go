package admission_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newWebhook returns the URL and the CA bundle of a webhook. The name of the object chooses its behavior.
func newWebhook(t *testing.T) (url, bundle string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct {
			Request struct {
				UID       string
				Name      string
				Operation string
				Object    struct {
					Metadata struct{ Labels map[string]string }
				}
				UserInfo struct{ Username string }
			}
		}
		if body, err := io.ReadAll(req.Body); err != nil || json.Unmarshal(body, &review) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": review.Request.UID, "allowed": true}
		mutating := strings.HasPrefix(req.URL.Path, "/mutate")
		switch name := review.Request.Name; {
		case name == "patched" && mutating:
			patch := `[{"op":"add","path":"/metadata/labels/added","value":"yes"},{"op":"replace","path":"/data/a","value":"changed"}]`
			response["patchType"] = "JSONPatch"
			response["patch"] = []byte(patch)
		case name == "bad-patch" && mutating:
			response["patchType"] = "JSONPatch"
			response["patch"] = []byte(`[{"op":"remove","path":"/data/none"}]`)
		case name == "copying" && mutating:
			patch := `[{"op":"add","path":"/data/a","value":"` + strings.Repeat("x", 1000) + `"}`
			for i := range 12 {
				patch += fmt.Sprintf(`,{"op":"copy","from":"/data","path":"/data/%d"}`, i)
			}
			patch += "]"
			response["patchType"] = "JSONPatch"
			response["patch"] = []byte(patch)
		case name == "no-type" && mutating:
			response["patch"] = []byte(`[]`)
		case name == "denied":
			response["allowed"] = false
		case name == "explained":
			response["allowed"] = false
			response["status"] = map[string]any{"message": "not today", "code": 409, "reason": "Conflict"}
		case name == "warned":
			response["warnings"] = []string{"careful", "very careful"}
		case name == "wrong-uid":
			response["uid"] = "other"
		case name == "large":
			response["warnings"] = []string{strings.Repeat("x", 3<<20)}
		case name == "broken":
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		case name == "deletion" && review.Request.Operation == "DELETE":
			response["allowed"] = false
			response["status"] = map[string]any{"message": "kept"}
		case name == "slow":
			select {
			case <-req.Context().Done():
			case <-time.After(time.Minute): // the caller gives up after a second
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.URL, base64.StdEncoding.EncodeToString(ca)
}

// configuration returns a webhook configuration for config maps of the namespace.
func configuration(kind, name, namespace, url, bundle, failurePolicy, selector string) *unstructured.Object {
	path := "/validate"
	if kind == "MutatingWebhookConfiguration" {
		path = "/mutate"
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": strings.ToLower(kind[:6]) + ".example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
			"failurePolicy": failurePolicy, "timeoutSeconds": int64(1),
			"clientConfig":      map[string]any{"url": url + path, "caBundle": bundle},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"objectSelector":    map[string]any{"matchLabels": map[string]any{"policy": selector}},
			"rules": []any{map[string]any{
				"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
			}},
		}},
	}}
}

// shown returns the parts of a config map changed by the webhooks.
func shown(object *unstructured.Object) string {
	if object == nil {
		return ""
	}
	return fmt.Sprintf("%v %v", object.GetLabels(), object.Object["data"])
}

// play creates objects of both failure policies and deletes one.
func play(t *testing.T, s *compare.Server) map[string]string {
	t.Helper()
	url, bundle := newWebhook(t)
	namespace := s.Namespace
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configurations, err := s.ForKind(t.Context(), schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		require.NoError(t, err)
		for policy, selector := range map[string]string{"Fail": "fail", "Ignore": "ignore"} {
			name := namespace + "-" + selector
			_, err = configurations.Create(t.Context(), configuration(kind, name, namespace, url, bundle, policy, selector), nil)
			require.NoError(t, err)
			client.DeleteAtEnd(t, configurations, name)
		}
	}
	configMaps := client.Resource(t, s.Client, "configmaps").Namespace(namespace)
	create := func(name, policy string, opts *metav1.CreateOptions) (*unstructured.Object, error) {
		return configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"},
			"metadata": map[string]any{"name": name, "labels": map[string]any{"policy": policy}},
		}}, opts)
	}
	for _, policy := range []string{"fail", "ignore"} { // a real server takes a moment to know the configurations
		s.Eventually(t, func() bool {
			_, denied := create("denied", policy, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			patched, err := create("patched", policy, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return denied != nil && err == nil && patched.GetLabels()["added"] == "yes"
		})
	}
	outcomes := map[string]string{}
	for _, policy := range []string{"fail", "ignore", "none"} {
		for _, name := range []string{"patched", "bad-patch", "copying", "no-type", "denied", "explained", "warned", "wrong-uid", "broken", "slow", "deletion", "plain"} {
			object, err := create(name, policy, nil)
			outcomes[policy+" "+name] = s.Outcome(shown(object), err)
			if err == nil {
				_, err := configMaps.Delete(t.Context(), name, nil)
				outcomes[policy+" delete "+name] = s.Outcome("", err)
			}
		}
	}
	return outcomes
}

func TestAdmission_WebhooksAsOnTheServer(t *testing.T) {
	compare.Responses(t, nil, 30, play)
}

func TestAdmission_DisabledWebhooksAreWarnings(t *testing.T) {
	var texts []string
	server := apitest.NewServer(t, &apitest.Options{
		DisableWebhooks: true, OnNotValidated: func(_ apitest.Request, text string) { texts = append(texts, text) },
	})
	require.NoError(t, server.Create(t.Context(), configuration("ValidatingWebhookConfiguration", "a", "default", "https://192.0.2.1", "", "Fail", "on")))
	client := server.Client()
	defer client.Close()
	configMaps, err := client.Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	for label, want := range map[string][]string{"on": {"apitest: not validated: webhook valida.example.com was not called"}, "off": nil} {
		texts = nil
		_, err := configMaps.Namespace("default").Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": label, "labels": map[string]any{"policy": label}},
		}}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, texts)
	}
}

func TestAdmission_ResponseIsBounded(t *testing.T) {
	url, bundle := newWebhook(t)
	s := compare.Apitest(t, nil)
	configurations := client.Resource(t, s.Client, "validatingwebhookconfigurations")
	all := configuration("ValidatingWebhookConfiguration", "all", s.Namespace, url, bundle, "Fail", "fail")
	require.NoError(t, unstructured.Set(all, 30, "webhooks", "0", "timeoutSeconds")) // 3 MiB take long on a busy machine
	_, err := configurations.Create(t.Context(), all, nil)
	require.NoError(t, err)
	_, err = s.Create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large, labels: {policy: fail}}")
	require.ErrorContains(t, err, "failed to call webhook: the response is larger than apitest's limit of 3145728 bytes")
}
