package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// widget is a struct for a part of the fields.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size  int64    `json:"size"`
		Disks []disk   `json:"disks,omitempty"`
		Tags  []string `json:"tags,omitempty"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status"`
}

type disk struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

const widgetType = `"apiVersion":"example.com/v1","kind":"Widget"`

// reviewOf returns an AdmissionReview with a request of the operation. The objects get apiVersion and kind.
func reviewOf(operation, object, oldObject string) string {
	for _, text := range []*string{&object, &oldObject} {
		if fields, found := strings.CutPrefix(*text, "{"); found && *text != "{}" {
			*text = "{" + widgetType + "," + fields
		} else if found {
			*text = "{" + widgetType + "}"
		}
	}
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":%q,
		"kind":{"group":"example.com","version":"v1","kind":"Widget"},"resource":{"group":"example.com","version":"v1","resource":"widgets"},
		"requestKind":{"group":"example.com","version":"v1beta1","kind":"Widget"},"name":"web","namespace":"shop","dryRun":true,
		"userInfo":{"username":"jane","uid":"1","groups":["ops"],"extra":{"scope":["all"]}},"object":%s,"oldObject":%s,"options":null}}`, operation, object, oldObject)
}

// post returns the code and the body of a handler's response to a review.
func post(t *testing.T, h http.Handler, query, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook"+query, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// response returns the response of a review with its patch as text.
func response(t *testing.T, h http.Handler, query, body string) (response, patch string) {
	t.Helper()
	code, text := post(t, h, query, body)
	require.Equal(t, http.StatusOK, code, text)
	var review struct {
		APIVersion, Kind string
		Response         map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(text), &review))
	assert.Equal(t, "admission.k8s.io/v1 AdmissionReview", review.APIVersion+" "+review.Kind)
	var decoded struct{ Response struct{ Patch []byte } }
	require.NoError(t, json.Unmarshal([]byte(text), &decoded))
	delete(review.Response, "patch")
	rest, err := json.Marshal(review.Response)
	require.NoError(t, err)
	return string(rest), string(decoded.Response.Patch)
}

func TestValidate_GoldenReviews(t *testing.T) {
	for name, tc := range map[string]struct {
		f    func(context.Context, *webhook.Request[unstructured.Object]) error
		want string
	}{
		"allowed": {func(context.Context, *webhook.Request[unstructured.Object]) error { return nil }, `{"allowed":true,"uid":"7"}`},
		"warnings and audit": {func(_ context.Context, r *webhook.Request[unstructured.Object]) error {
			r.Warn("size %d is deprecated", 7)
			r.Audit("size", "7")
			return nil
		}, `{"allowed":true,"auditAnnotations":{"size":"7"},"uid":"7","warnings":["size 7 is deprecated"]}`},
		"error": {func(_ context.Context, r *webhook.Request[unstructured.Object]) error {
			r.Warn("wait")
			return errors.New("no such size")
		}, `{"allowed":false,"status":{"code":403,"message":"no such size","metadata":{},"reason":"Forbidden","status":"Failure"},"uid":"7","warnings":["wait"]}`},
		"status error": {func(context.Context, *webhook.Request[unstructured.Object]) error {
			return fmt.Errorf("check: %w", apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "web", field.ErrorList{field.Required(field.NewPath("spec", "size"), "")}))
		}, `{"allowed":false,"status":{"code":422,"details":{"causes":[{"field":"spec.size","message":"Required value","reason":"FieldValueRequired"}],"group":"example.com","kind":"Widget","name":"web"},` +
			`"message":"check: Widget.example.com \"web\" is invalid: spec.size: Required value","metadata":{},"reason":"Invalid","status":"Failure"},"uid":"7"}`},
		"panic": {func(context.Context, *webhook.Request[unstructured.Object]) error { panic("a secret") },
			`{"allowed":false,"status":{"code":500,"details":{"causes":[{"message":"the webhook panicked"}]},"message":"Internal error occurred: the webhook panicked","metadata":{},"reason":"InternalError","status":"Failure"},"uid":"7"}`},
	} {
		log, _ := controllertest.Logger()
		got, patch := response(t, webhook.Validate(tc.f, &webhook.Options{Logger: log}), "", reviewOf("CREATE", `{}`, "null"))
		assert.JSONEq(t, tc.want, got, name)
		assert.Empty(t, patch, name)
	}
}

func TestValidate_RequestHasAllFields(t *testing.T) {
	var got webhook.Request[unstructured.Object]
	h := webhook.Validate(func(_ context.Context, r *webhook.Request[unstructured.Object]) error { got = *r; return nil }, nil)
	_, _ = response(t, h, "", reviewOf("UPDATE", `{"spec":{"size":2}}`, `{"spec":{"size":1}}`))
	assert.Equal(t, webhook.Request[unstructured.Object]{
		UID: "7", Operation: webhook.Update, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		RequestKind: schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"},
		Resource:    schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		Name:        "web", Namespace: "shop", DryRun: true,
		User:      webhook.User{Username: "jane", UID: "1", Groups: []string{"ops"}, Extra: map[string][]string{"scope": {"all"}}},
		Object:    &unstructured.Object{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(2)}}},
		OldObject: &unstructured.Object{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)}}},
	}, got)
	_, _ = response(t, h, "", reviewOf("DELETE", `null`, `{"spec":{"size":1}}`))
	assert.Nil(t, got.Object)
	assert.NotNil(t, got.OldObject)
}

func TestMutate_PatchesOfStructs(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		f      func(*widget)
		want   string
	}{
		"nothing":                    {`{"spec":{"size":1,"unknown":true}}`, func(*widget) {}, ""},
		"field":                      {`{"spec":{"size":1,"unknown":true}}`, func(w *widget) { w.Spec.Size = 2 }, `[{"op":"replace","path":"/spec/size","value":2}]`},
		"zero":                       {`{"spec":{"size":1}}`, func(w *widget) { w.Spec.Size = 0 }, `[{"op":"replace","path":"/spec/size","value":0}]`},
		"in a missing parent":        {`{"spec":{"size":1}}`, func(w *widget) { w.Status.Phase = "new" }, `[{"op":"add","path":"/status","value":{"phase":"new"}}]`},
		"escaped label":              {`{"metadata":{"labels":{"a/b":"1"}}}`, func(w *widget) { w.Labels["a/b"] = "2"; w.Labels["c~d"] = "3" }, `[{"op":"replace","path":"/metadata/labels/a~1b","value":"2"},{"op":"add","path":"/metadata/labels/c~0d","value":"3"}]`},
		"removed":                    {`{"spec":{"tags":["a"],"unknown":true}}`, func(w *widget) { w.Spec.Tags = nil }, `[{"op":"remove","path":"/spec/tags"}]`},
		"element by name":            {`{"spec":{"disks":[{"name":"a","size":1,"x":1},{"name":"b","size":2,"x":2}]}}`, func(w *widget) { w.Spec.Disks = append([]disk{{"c", 3}}, w.Spec.Disks...); w.Spec.Disks[2].Size = 5 }, `[{"op":"replace","path":"/spec/disks/0/name","value":"c"},{"op":"replace","path":"/spec/disks/0/size","value":3},{"op":"remove","path":"/spec/disks/0/x"},{"op":"replace","path":"/spec/disks/1/name","value":"a"},{"op":"replace","path":"/spec/disks/1/size","value":1},{"op":"replace","path":"/spec/disks/1/x","value":1},{"op":"add","path":"/spec/disks/2","value":{"name":"b","size":5,"x":2}}]`},
		"equal elements":             {`{"spec":{"disks":[{"name":"a","size":1,"x":1},{"name":"a","size":1,"x":2}]}}`, func(w *widget) { w.Spec.Disks = append(w.Spec.Disks, disk{"c", 3}) }, `[{"op":"add","path":"/spec/disks/2","value":{"name":"c","size":3}}]`},
		"elements of the same name":  {`{"spec":{"disks":[{"name":"a","size":1,"x":1},{"name":"a","size":2,"x":2}]}}`, func(w *widget) { w.Spec.Disks[1].Size = 5 }, `[{"op":"replace","path":"/spec/disks/1/size","value":5}]`},
		"element removed":            {`{"spec":{"disks":[{"name":"a","size":1,"x":1},{"name":"b","size":2,"x":2}]}}`, func(w *widget) { w.Spec.Disks = w.Spec.Disks[1:] }, `[{"op":"remove","path":"/spec/disks/0"}]`},
		"element added":              {`{"spec":{"tags":["a","b"]}}`, func(w *widget) { w.Spec.Tags = []string{"a", "c", "b"} }, `[{"op":"add","path":"/spec/tags/1","value":"c"}]`},
		"element of the same length": {`{"spec":{"tags":["a","b"]}}`, func(w *widget) { w.Spec.Tags = []string{"a", "c"} }, `[{"op":"replace","path":"/spec/tags/1","value":"c"}]`},
	} {
		h := webhook.Mutate(func(_ context.Context, r *webhook.Request[widget]) (*widget, error) {
			tc.f(r.Object)
			return r.Object, nil
		}, nil)
		got, patch := response(t, h, "", reviewOf("CREATE", tc.object, "null"))
		if assert.Equal(t, tc.want, patch, name); tc.want != "" {
			assert.JSONEq(t, `{"allowed":true,"patchType":"JSONPatch","uid":"7"}`, got, name)
		} else {
			assert.JSONEq(t, `{"allowed":true,"uid":"7"}`, got, name)
		}
	}
}

func TestMutate_Unstructured(t *testing.T) {
	for name, tc := range map[string]struct {
		operation, object string
		f                 func(*webhook.Request[unstructured.Object]) (*unstructured.Object, error)
		want, wantPatch   string
	}{
		"in place": {"CREATE", `{"spec":{"a":null,"b":1}}`, func(r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
			r.Object.Object["spec"] = map[string]any{"b": nil, "c": []any{nil}}
			return r.Object, nil
		}, `{"allowed":true,"patchType":"JSONPatch","uid":"7"}`, `[{"op":"remove","path":"/spec/a"},{"op":"replace","path":"/spec/b","value":null},{"op":"add","path":"/spec/c","value":[null]}]`},
		"nil":    {"CREATE", `{}`, func(*webhook.Request[unstructured.Object]) (*unstructured.Object, error) { return nil, nil }, `{"allowed":true,"uid":"7"}`, ""},
		"delete": {"DELETE", `null`, func(r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) { return r.Object, nil }, `{"allowed":true,"uid":"7"}`, ""},
		"change of a delete": {"DELETE", `null`, func(*webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
			return &unstructured.Object{Object: map[string]any{}}, nil
		}, `{"allowed":false,"status":{"code":500,"details":{"causes":[{"message":"the webhook changed an object of the operation DELETE, which has none"}]},"message":"Internal error occurred: the webhook changed an object of the operation DELETE, which has none","metadata":{},"reason":"InternalError","status":"Failure"},"uid":"7"}`, ""},
		"error": {"CREATE", `{}`, func(r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
			return r.Object, errors.New("no")
		}, `{"allowed":false,"status":{"code":403,"message":"no","metadata":{},"reason":"Forbidden","status":"Failure"},"uid":"7"}`, ""},
	} {
		h := webhook.Mutate(func(_ context.Context, r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
			return tc.f(r)
		}, nil)
		got, patch := response(t, h, "", reviewOf(tc.operation, tc.object, "null"))
		assert.JSONEq(t, tc.want, got, name)
		assert.Equal(t, tc.wantPatch, patch, name)
	}
}

func TestValidate_ObjectOfWrongType(t *testing.T) {
	h := webhook.Validate(func(context.Context, *webhook.Request[widget]) error { return nil }, nil)
	got, _ := response(t, h, "", reviewOf("CREATE", `{"spec":{"size":"large"}}`, "null"))
	assert.JSONEq(t, `{"allowed":false,"status":{"code":400,"message":"decode object: .spec.size: is string, not int64","metadata":{},"reason":"BadRequest","status":"Failure"},"uid":"7"}`, got)
}

func TestValidate_RejectsRequests(t *testing.T) {
	var results []webhook.RequestResult
	h := webhook.Validate(func(context.Context, *webhook.Request[unstructured.Object]) error { return nil },
		&webhook.Options{MaxBody: 1000, OnRequest: func(r webhook.RequestResult) { results = append(results, r) }})
	for name, tc := range map[string]struct {
		method, contentType, query, body string
		code                             int
		want                             string
	}{
		"method":          {http.MethodGet, "application/json", "", "", 405, "method GET is not supported (POST AdmissionReview)"},
		"content type":    {http.MethodPost, "text/plain", "", "", 415, `content type "text/plain" is not supported (send application/json)`},
		"no content type": {http.MethodPost, "", "", "", 415, `content type "" is not supported (send application/json)`},
		"timeout":         {http.MethodPost, "application/json", "?timeout=soon", "", 400, `invalid timeout "soon"`},
		"negative":        {http.MethodPost, "application/json", "?timeout=-1s", "", 400, `invalid timeout "-1s"`},
		"large":           {http.MethodPost, "application/json", "", strings.Repeat(" ", 1001), 413, "the body is larger than 1000 bytes"},
		"no JSON":         {http.MethodPost, "application/json", "", "{", 400, "decode AdmissionReview: unexpected end of JSON input"},
		"version":         {http.MethodPost, "application/json", "", `{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}`, 400, `unknown review "AdmissionReview" of "admission.k8s.io/v2" (send AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1)`},
		"kind":            {http.MethodPost, "application/json", "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, 400, `unknown review "ConversionReview" of "apiextensions.k8s.io/v1" (send AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1)`},
		"no request":      {http.MethodPost, "application/json", "", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "AdmissionReview has no request"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "/hook"+tc.query, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		w := httptest.NewRecorder()
		results = nil
		h.ServeHTTP(w, r)
		assert.Equal(t, tc.code, w.Code, name)
		assert.Equal(t, tc.want+"\n", w.Body.String(), name)
		require.Len(t, results, 1, name)
		assert.Equal(t, tc.code, results[0].Code, name)
		assert.EqualError(t, results[0].Err, tc.want, name)
	}
}

func TestValidate_DeadlineOfRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var results []webhook.RequestResult
		h := webhook.Validate(func(ctx context.Context, r *webhook.Request[unstructured.Object]) error {
			<-ctx.Done()
			return fmt.Errorf("look up: %w", ctx.Err())
		}, &webhook.Options{OnRequest: func(r webhook.RequestResult) { results = append(results, r) }})
		got, _ := response(t, h, "?timeout=10s", reviewOf("CREATE", `{}`, "null"))
		assert.JSONEq(t, `{"allowed":false,"status":{"code":504,"message":"look up: context deadline exceeded","metadata":{},"reason":"Timeout","status":"Failure"},"uid":"7"}`, got)
		require.Len(t, results, 1)
		require.ErrorIs(t, results[0].Err, context.DeadlineExceeded)
		results[0].Err = nil
		assert.Equal(t, webhook.RequestResult{Path: "/hook", UID: "7", Duration: 10 * time.Second, Code: 504}, results[0])
	})
}

func TestValidate_ReportsPanics(t *testing.T) {
	var result webhook.RequestResult
	log, lines := controllertest.Logger()
	h := webhook.Validate(func(context.Context, *webhook.Request[unstructured.Object]) error { panic("out of order") },
		&webhook.Options{Logger: log, OnRequest: func(r webhook.RequestResult) { result = r }})
	_, _ = response(t, h, "", reviewOf("CREATE", `{}`, "null"))
	var panicked *cache.PanicError
	require.ErrorAs(t, result.Err, &panicked)
	assert.Equal(t, "the webhook, for CREATE Widget shop/web", panicked.Where)
	assert.Equal(t, "out of order", panicked.Value)
	assert.False(t, result.Allowed)
	logged := lines()
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], "out of order")
	assert.Contains(t, logged[0], "admission_test.go", "the stack")
}
