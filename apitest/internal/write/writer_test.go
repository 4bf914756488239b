package write_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/controllers"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

const mergePatch = "application/merge-patch+json"

// fixture is a Writer with the definitions of setup.txt and a namespace "shop".
type fixture struct {
	*writerPlayer
	now time.Time
}

func newFixture(t *testing.T, functions ...*admissionRecorder) *fixture {
	t.Helper()
	f := &fixture{writerPlayer: &writerPlayer{store: store.New(store.DefaultLimit), registry: kinds.New(nil)}, now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	config := admission.Config{Store: f.store, Registry: f.registry, DisableWebhooks: true}
	for _, recorder := range functions {
		config.Mutate = append(config.Mutate, recorder.onMutate)
		config.Validate = append(config.Validate, recorder.onValidate)
	}
	f.writer = write.New(write.Config{Store: f.store, Registry: f.registry, Admission: admission.New(config), Now: func() time.Time { return f.now }})
	f.store.SetOnWrite(controllers.NewDefinitions(t.Context(), f.store, f.registry, f.writer, time.Now).Observe)
	for _, req := range append(readScenario(t, "testdata/setup.txt"), request{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"shop"}}`}) {
		f.mustSend(t, req)
	}
	return f
}

func (f *fixture) request(t *testing.T, path string) *write.Request {
	t.Helper()
	target := targetOf(t, path)
	resource := f.registry.Lookup(target.group, target.version, target.plural)
	require.NotNil(t, resource, path)
	return &write.Request{Resource: resource, Subresource: target.subresource, Namespace: target.namespace, Name: target.name, Query: target.query}
}

const (
	configMaps = "/api/v1/namespaces/shop/configmaps"
	widgets    = "/apis/write.example.com/v1/namespaces/shop/widgets"
)

func TestWriter_ConcurrentPatches(t *testing.T) {
	f := newFixture(t)
	f.mustSend(t, request{method: "POST", path: configMaps, body: `{"metadata":{"name":"x"}}`})
	const writers, writes = 8, 20
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range writes {
				patch := fmt.Sprintf(`{"data":{"k%d-%d":"v"}}`, i, j)
				_, err := f.writer.Patch(t.Context(), f.request(t, configMaps+"/x"), write.Body{Data: []byte(patch), MediaType: mergePatch})
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	obj, exists := f.store.Get(store.Key{Resource: "configmaps", Namespace: "shop", Name: "x"})
	require.True(t, exists)
	data, _, err := unstructuredv1.NestedStringMap(obj, "data")
	require.NoError(t, err)
	assert.Len(t, data, writers*writes)
}

func TestWriter_ConcurrentUpdatesConflict(t *testing.T) {
	f := newFixture(t)
	f.mustSend(t, request{method: "POST", path: configMaps, body: `{"metadata":{"name":"x"}}`})
	const writers = 8
	var group sync.WaitGroup
	var mu sync.Mutex
	succeeded := 0
	stored, _ := f.store.Get(store.Key{Resource: "configmaps", Namespace: "shop", Name: "x"})
	for i := range writers {
		group.Go(func() {
			obj := (&unstructuredv1.Unstructured{Object: stored}).DeepCopy()
			obj.SetAnnotations(map[string]string{"writer": fmt.Sprint(i)})
			_, err := f.writer.Update(t.Context(), f.request(t, configMaps+"/x"), write.Body{Object: obj.Object})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				succeeded++
			} else {
				assert.True(t, apierrors.IsConflict(err), "%v", err)
			}
		})
	}
	group.Wait()
	assert.Equal(t, 1, succeeded)
}

func TestWriter_GenerateName(t *testing.T) {
	f := newFixture(t)
	names := map[string]bool{}
	for range 50 {
		result, err := f.writer.Create(t.Context(), f.request(t, configMaps), write.Body{Object: map[string]any{
			"metadata": map[string]any{"generateName": "a-base-that-is-as-long-as-a-generated-name-can-be-and-longer-"},
		}})
		require.NoError(t, err)
		name := (&unstructuredv1.Unstructured{Object: result.Object}).GetName()
		assert.Len(t, name, 63)
		names[name] = true
	}
	assert.Len(t, names, 50)
}

func TestWriter_Clock(t *testing.T) {
	f := newFixture(t)
	f.mustSend(t, request{method: "POST", path: configMaps, agent: "a/1", body: `{"metadata":{"name":"x","finalizers":["example.com/f"]},"data":{"a":"1"}}`})
	f.now = f.now.Add(time.Hour)
	f.mustSend(t, request{method: "PATCH", path: configMaps + "/x", agent: "b/1", mediaType: mergePatch, body: `{"data":{"b":"1"}}`})
	f.now = f.now.Add(time.Hour)
	f.mustSend(t, request{method: "DELETE", path: configMaps + "/x"})
	stored, _ := f.store.Get(store.Key{Resource: "configmaps", Namespace: "shop", Name: "x"})
	obj := unstructuredv1.Unstructured{Object: stored}
	assert.Equal(t, "2030-01-02T03:04:05Z", obj.GetCreationTimestamp().UTC().Format(time.RFC3339))
	assert.Equal(t, "2030-01-02T05:04:05Z", obj.GetDeletionTimestamp().UTC().Format(time.RFC3339))
	times := map[string]string{}
	for _, entry := range obj.GetManagedFields() {
		times[entry.Manager] = entry.Time.UTC().Format(time.RFC3339)
	}
	assert.Equal(t, map[string]string{"a": "2030-01-02T03:04:05Z", "b": "2030-01-02T04:04:05Z"}, times)
}

// admissionRecorder has admission functions that note their calls.
type admissionRecorder struct {
	calls    []string
	mutate   func(*admission.Attributes) error
	validate func(*admission.Attributes) error
}

func (a *admissionRecorder) onMutate(_ context.Context, attributes *admission.Attributes) error {
	return a.call("mutate", attributes, a.mutate)
}

func (a *admissionRecorder) onValidate(_ context.Context, attributes *admission.Attributes) error {
	return a.call("validate", attributes, a.validate)
}

func (a *admissionRecorder) call(step string, attributes *admission.Attributes, hook func(*admission.Attributes) error) error {
	resource := attributes.Resource.Plural
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	a.calls = append(a.calls, fmt.Sprintf("%s %s %s %s/%s %s object=%t old=%t options=%T dry=%t", step, attributes.Operation, resource,
		attributes.Namespace, attributes.Name, attributes.Kind.Kind, attributes.Object != nil, attributes.OldObject != nil,
		attributes.Options, attributes.DryRun))
	if hook == nil {
		return nil
	}
	return hook(attributes)
}

func TestWriter_AdmissionCalls(t *testing.T) {
	recorder := &admissionRecorder{}
	f := newFixture(t, recorder)
	tests := []struct {
		name  string
		req   request
		calls []string
	}{
		{"create", request{method: "POST", path: widgets, body: `{"kind":"Widget","apiVersion":"write.example.com/v1","metadata":{"name":"w"},"spec":{"size":1}}`}, []string{
			"mutate CREATE widgets shop/w Widget object=true old=false options=*v1.CreateOptions dry=false",
			"validate CREATE widgets shop/w Widget object=true old=false options=*v1.CreateOptions dry=false",
		}},
		{"generated name", request{method: "POST", path: widgets + "?dryRun=All", body: `{"kind":"Widget","apiVersion":"write.example.com/v1","metadata":{"generateName":"w-"},"spec":{"size":-1}}`}, []string{
			"mutate CREATE widgets shop/ Widget object=true old=false options=*v1.CreateOptions dry=true",
		}},
		{"patch", request{method: "PATCH", path: widgets + "/w", mediaType: mergePatch, body: `{"spec":{"size":2}}`}, []string{
			"mutate UPDATE widgets shop/w Widget object=true old=true options=*v1.UpdateOptions dry=false",
			"validate UPDATE widgets shop/w Widget object=true old=true options=*v1.UpdateOptions dry=false",
		}},
		{"status", request{method: "PATCH", path: widgets + "/w/status", mediaType: mergePatch, body: `{"status":{"phase":"x"}}`}, []string{
			"mutate UPDATE widgets/status shop/w Widget object=true old=true options=*v1.UpdateOptions dry=false",
			"validate UPDATE widgets/status shop/w Widget object=true old=true options=*v1.UpdateOptions dry=false",
		}},
		{"scale", request{method: "PUT", path: widgets + "/w/scale", body: `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"w"},"spec":{"replicas":2}}`}, []string{
			"mutate UPDATE widgets/scale shop/w Scale object=true old=true options=*v1.UpdateOptions dry=false",
			"validate UPDATE widgets/scale shop/w Scale object=true old=true options=*v1.UpdateOptions dry=false",
		}},
		{"apply creates", request{method: "PATCH", path: configMaps + "/a?fieldManager=m", mediaType: "application/apply-patch+yaml", body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`}, []string{
			"mutate CREATE configmaps shop/a ConfigMap object=true old=false options=*v1.CreateOptions dry=false",
			"validate CREATE configmaps shop/a ConfigMap object=true old=false options=*v1.CreateOptions dry=false",
		}},
		{"delete", request{method: "DELETE", path: widgets + "/w?dryRun=All"}, []string{
			"mutate DELETE widgets shop/w Widget object=false old=true options=*v1.DeleteOptions dry=true",
			"validate DELETE widgets shop/w Widget object=false old=true options=*v1.DeleteOptions dry=true",
		}},
		{"namespace", request{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"n"}}`}, []string{
			"mutate CREATE namespaces n/n Namespace object=true old=false options=*v1.CreateOptions dry=false",
			"validate CREATE namespaces n/n Namespace object=true old=false options=*v1.CreateOptions dry=false",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			recorder.calls = nil
			code, _, body := f.send(t, test.req)
			assert.NotEqual(t, 404, code, body)
			assert.Equal(t, test.calls, recorder.calls)
		})
	}
}

func TestWriter_AdmissionChanges(t *testing.T) {
	recorder := &admissionRecorder{}
	f := newFixture(t, recorder)
	recorder.mutate = func(attributes *admission.Attributes) error {
		attributes.Warn("changed")
		spec, _ := attributes.Object["spec"].(map[string]any)
		spec["color"] = "blue"
		spec["unknown"] = true
		return nil
	}
	body := write.Body{Object: map[string]any{
		"kind": "Widget", "apiVersion": "write.example.com/v1", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"size": int64(1)},
	}}
	result, err := f.writer.Create(t.Context(), f.request(t, widgets), body)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"color": "blue", "size": int64(1)}, result.Object["spec"], "what admission adds is pruned")
	assert.Equal(t, []string{"changed"}, result.Warnings)

	recorder.mutate = nil
	recorder.validate = func(*admission.Attributes) error { return errors.New("no") }
	_, err = f.writer.Delete(t.Context(), f.request(t, widgets+"/w"), write.Body{})
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	_, exists := f.store.Get(store.Key{Group: "write.example.com", Resource: "widgets", Namespace: "shop", Name: "w"})
	assert.True(t, exists)
}

func TestWriter_Approval(t *testing.T) {
	f := newFixture(t)
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	req := f.request(t, requests)
	req.User = access.User{Name: "jane", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
	created, err := f.writer.Create(t.Context(), req, write.Body{Object: map[string]any{
		"metadata": map[string]any{"name": "c"},
		"spec":     map[string]any{"signerName": "example.com/x", "usages": []any{"client auth"}, "request": "eA==", "username": "forged"},
	}})
	require.NoError(t, err)
	spec, _ := created.Object["spec"].(map[string]any)
	assert.Equal(t, "jane", spec["username"])
	assert.Equal(t, []any{"g"}, spec["groups"])
	f.mustSend(t, request{method: "PATCH", path: requests + "/c/approval", mediaType: mergePatch,
		body: `{"spec":{"signerName":"example.com/y"},"status":{"certificate":"eA==","conditions":[{"type":"Approved","status":"True","reason":"R"}]}}`})
	stored, _ := f.store.Get(store.Key{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Name: "c"})
	assert.Equal(t, spec["signerName"], stored["spec"].(map[string]any)["signerName"])
	status, _ := stored["status"].(map[string]any)
	assert.NotContains(t, status, "certificate")
	conditions, _ := status["conditions"].([]any)
	require.Len(t, conditions, 1)
	assert.Equal(t, "2030-01-02T03:04:05Z", conditions[0].(map[string]any)["lastUpdateTime"])
}

func TestWriter_EndedContext(t *testing.T) {
	f := newFixture(t)
	f.mustSend(t, request{method: "POST", path: configMaps, body: `{"metadata":{"name":"x"}}`})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.writer.Update(ctx, f.request(t, configMaps+"/x"), write.Body{Object: map[string]any{"metadata": map[string]any{"name": "x"}}})
	assert.ErrorContains(t, err, context.Canceled.Error())
	_, err = f.writer.Delete(ctx, f.request(t, configMaps+"/x"), write.Body{})
	assert.ErrorContains(t, err, context.Canceled.Error())
}

func TestWriter_FieldManagerOfUserAgent(t *testing.T) {
	f := newFixture(t)
	long := ""
	for range 200 {
		long += "é"
	}
	for agent, want := range map[string]string{"kubectl/v1.36 (linux)": "kubectl", "a\x00b": "ab", long: long[:128]} {
		req := f.request(t, configMaps)
		req.UserAgent = agent
		req.Query = url.Values{"dryRun": {metav1.DryRunAll}}
		result, err := f.writer.Create(t.Context(), req, write.Body{Object: map[string]any{
			"metadata": map[string]any{"name": "x"}, "data": map[string]any{"a": "b"},
		}})
		require.NoError(t, err)
		entries := (&unstructuredv1.Unstructured{Object: result.Object}).GetManagedFields()
		require.Len(t, entries, 1)
		assert.Equal(t, want, entries[0].Manager)
	}
}
