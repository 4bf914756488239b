package dynamic_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestApply_ConflictOfManyManagers(t *testing.T) {
	client, namespace := newNamespace(t)
	deployments := resource(t, client, "deploy").Namespace(namespace)
	_, err := deployments.Apply(t.Context(), deployment("web"), &metav1.ApplyOptions{FieldManager: "one"})
	require.NoError(t, err)
	_, err = deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"front"}}}`), &metav1.PatchOptions{FieldManager: "editor"})
	require.NoError(t, err)
	_, err = deployments.Subresource("scale").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), &metav1.PatchOptions{FieldManager: "scaler"})
	require.NoError(t, err)

	mine := deployment("web")
	mine.SetLabels(map[string]string{"tier": "back"})
	template := mine.Object["spec"].(map[string]any)["template"].(map[string]any)
	template["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:2"}}}
	_, err = deployments.Apply(t.Context(), mine, &metav1.ApplyOptions{FieldManager: "two"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	var conflict *dynamic.ApplyConflictError
	require.ErrorAs(t, err, &conflict)
	assert.ElementsMatch(t, []dynamic.FieldConflict{
		{Field: `.spec.template.spec.containers[name="web"].image`, Manager: "one"},
		{Field: ".metadata.labels.tier", Manager: "editor", APIVersion: "apps/v1"},
		{Field: ".spec.replicas", Manager: "scaler", Subresource: "scale", APIVersion: "apps/v1"},
	}, conflict.Conflicts)

	_, err = deployments.Apply(t.Context(), mine, &metav1.ApplyOptions{FieldManager: "two", Force: true})
	require.NoError(t, err)
}

// TestFieldValidationError_StrictWrites covers every verb that writes, on a built-in and a custom kind.
func TestFieldValidationError_StrictWrites(t *testing.T) {
	client, namespace := newNamespace(t)
	for name, of := range map[string]*dynamic.Resource{
		"a built-in kind": resource(t, client, "cm").Namespace(namespace),
		"a custom kind":   sharedWidgets(t, client, namespace),
	} {
		t.Run(name, func(t *testing.T) {
			strict := func() *unstructured.Object {
				return &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "one", "nope": "secret"}, "foo": "secret"}}
			}
			patching := &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
			writes := map[string]func() error{
				"update": func() error {
					_, err := of.Update(t.Context(), strict(), &metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
					return err
				},
				"merge patch": func() error {
					_, err := of.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"foo":"secret","metadata":{"nope":"secret"}}`), patching)
					return err
				},
				"JSON patch": func() error {
					_, err := of.Patch(t.Context(), "one", types.JSONPatchType, []byte(`[{"op":"add","path":"/foo","value":"secret"},
						{"op":"add","path":"/metadata/nope","value":"secret"}]`), patching)
					return err
				},
			}
			_, err := of.Create(t.Context(), strict(), &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			assertUnknown(t, err, "foo", "metadata.nope")
			_, err = of.Create(t.Context(), strict(), nil)
			require.NoError(t, err, "without Strict the server drops them")
			for how, write := range writes {
				t.Run(how, func(t *testing.T) { assertUnknown(t, write(), "foo", "metadata.nope") })
			}
			_, err = of.Apply(t.Context(), strict(), &metav1.ApplyOptions{FieldManager: "test"})
			// The server may report only the field nearer to the root.
			var fields *dynamic.FieldValidationError
			require.ErrorAs(t, err, &fields)
			assert.Contains(t, fields.Unknown, "foo")
			assert.Subset(t, []string{"foo", "metadata.nope"}, fields.Unknown)
			assert.NotContains(t, err.Error(), "secret")
			_, err = of.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1","a":"2"}}}`), patching)
			require.ErrorAs(t, err, &fields)
			assert.Equal(t, []string{"metadata.labels.a"}, fields.Duplicate)
		})
	}
}

func assertUnknown(t *testing.T, err error, want ...string) {
	t.Helper()
	var fields *dynamic.FieldValidationError
	require.ErrorAs(t, err, &fields)
	assert.ElementsMatch(t, want, fields.Unknown)
	assert.NotContains(t, err.Error(), "secret")
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
}

func TestCreate_InvalidObject(t *testing.T) {
	client, namespace := newNamespace(t)
	broken := deployment("broken")
	broken.Object["spec"].(map[string]any)["replicas"] = int64(-1)
	broken.Object["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
	_, err := resource(t, client, "deploy").Namespace(namespace).Create(t.Context(), broken, nil)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	var fields []string
	for _, cause := range status.ErrStatus.Details.Causes {
		fields = append(fields, cause.Field)
	}
	assert.ElementsMatch(t, []string{"spec.replicas", "spec.template.metadata.labels"}, fields)
}

func TestUpdate_StaleResourceVersion(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	stale, err := configMaps.Create(t.Context(), configMap("one", nil), nil)
	require.NoError(t, err)
	_, err = configMaps.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	_, err = configMaps.Update(t.Context(), stale, nil)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `configmaps "one"`)
	var apply *dynamic.ApplyConflictError
	assert.NotErrorAs(t, err, &apply)
}

func TestResource_ForbiddenVerbs(t *testing.T) {
	newNamespace(t)
	client := connect(t, "limited")
	configMaps := resource(t, client, "configmaps")
	for verb, call := range map[string]func() error{
		"create": func() error { _, err := configMaps.Create(t.Context(), configMap("x", nil), nil); return err },
		"update": func() error { _, err := configMaps.Update(t.Context(), configMap("x", nil), nil); return err },
		"patch": func() error {
			_, err := configMaps.Apply(t.Context(), configMap("x", nil), &metav1.ApplyOptions{FieldManager: "test"})
			return err
		},
		"delete":           func() error { _, err := configMaps.Delete(t.Context(), "x", nil); return err },
		"deletecollection": func() error { _, err := configMaps.DeleteCollection(t.Context(), nil, nil); return err },
	} {
		err := call()
		require.True(t, apierrors.IsForbidden(err), "%s: %v", verb, err)
		assert.ErrorContains(t, err, fmt.Sprintf(`User "limited" cannot %s resource "configmaps"`, verb))
	}
}

func TestCreate_DeniedByWebhook(t *testing.T) {
	client, namespace := newNamespace(t)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,
			"status":{"code":403,"reason":"Forbidden","message":"config maps are closed today"}}}`, review.Request.UID)
	}))
	t.Cleanup(hook.Close)
	hooks := resource(t, client, "validatingwebhookconfigurations")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	_, err := hooks.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": namespace},
		"webhooks": []any{map[string]any{
			"name": "closed.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig":      map[string]any{"url": hook.URL, "caBundle": base64.StdEncoding.EncodeToString(authority)},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"rules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"},
			}},
		}},
	}}, nil)
	require.NoError(t, err)
	removed(t, hooks, namespace)
	err = denied(t, resource(t, client, "cm").Namespace(namespace))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `admission webhook "closed.example.com" denied the request: config maps are closed today`)
}

func TestCreate_DeniedByAdmissionPolicy(t *testing.T) {
	client, namespace := newNamespace(t)
	policies := resource(t, client, "validatingadmissionpolicies")
	bindings := resource(t, client, "validatingadmissionpolicybindings")
	_, err := policies.Create(t.Context(), named(namespace, map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"},
		}}},
		"validations": []any{map[string]any{"expression": "has(object.data)", "message": "a config map needs data"}},
	}), nil)
	require.NoError(t, err)
	removed(t, policies, namespace)
	_, err = bindings.Create(t.Context(), named(namespace, map[string]any{
		"policyName": namespace, "validationActions": []any{"Deny"},
		"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}},
	}), nil)
	require.NoError(t, err)
	removed(t, bindings, namespace)
	err = denied(t, resource(t, client, "cm").Namespace(namespace))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "a config map needs data")
}

// denied creates a ConfigMap (dry run) until the server denies it.
func denied(t *testing.T, configMaps *dynamic.Resource) error {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := configMaps.Create(t.Context(), configMap("refused", nil), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		require.True(t, time.Now().Before(deadline), "the server never denied it")
	}
}
