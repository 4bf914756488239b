package dynamic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

// failingPods returns pods of a server that responds to every request with a Status.
func failingPods(t *testing.T, code int, reason metav1.StatusReason, message, details string) *dynamic.Resource {
	t.Helper()
	if details == "" {
		details = "{}"
	}
	pods, _ := serve(t, map[string]http.HandlerFunc{"": failure(code, fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q,"details":%s}`, reason, code, message, details))})
	return pods
}

func TestApplyConflictError_ManagersAndFields(t *testing.T) {
	pods := failingPods(t, 409, metav1.StatusReasonConflict, "Apply failed with 5 conflicts", `{"causes":[
		{"reason":"FieldManagerConflict","message":"conflict with \"one\"","field":".spec.containers[name=\"web\"].image"},
		{"reason":"FieldManagerConflict","message":"conflict with \"scaler\" with subresource \"scale\" using autoscaling/v1 at 2026-01-02T03:04:05Z","field":".spec.replicas"},
		{"reason":"FieldManagerConflict","message":"conflict with \"my \\\"editor\\\"\" using v1","field":".metadata.labels.a"},
		{"reason":"FieldValueInvalid","message":"of another sort","field":"x"},
		{"reason":"FieldManagerConflict","message":"conflict with someone, worded anew","field":".spec"}]}`)
	_, err := pods.Apply(t.Context(), object("Pod", "web"), &metav1.ApplyOptions{FieldManager: "me"})
	var conflict *dynamic.ApplyConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, []dynamic.FieldConflict{
		{Field: `.spec.containers[name="web"].image`, Manager: "one"},
		{Field: ".spec.replicas", Manager: "scaler", Subresource: "scale", APIVersion: "autoscaling/v1", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Field: ".metadata.labels.a", Manager: `my "editor"`, APIVersion: "v1"},
		{Field: ".spec", Manager: "someone, worded anew"},
	}, conflict.Conflicts)
	assert.Equal(t, `PATCH /api/v1/namespaces/home/pods/web: other managers own applied fields: `+
		`.spec.containers[name="web"].image of "one", .spec.replicas of "scaler" through scale, .metadata.labels.a of "my \"editor\"", `+
		`.spec of "someone, worded anew" (leave these fields out, or set Force to take them over)`, err.Error())
	assert.True(t, apierrors.IsConflict(err))
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	assert.Len(t, status.ErrStatus.Details.Causes, 5)
}

func TestResource_PathNotServed(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"API server":  {"404 page not found\n", "does not serve pods in version v1 (has its definition or version been removed?)"},
		"other proxy": {"<h1>Not found</h1>", "no Kubernetes Status, but"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := servePages(t, map[string]http.HandlerFunc{"": failure(http.StatusNotFound, c.body)})
			pods := resource(t, client, "pods")
			for verb, call := range map[string]func() error{
				"get":    func() error { _, err := pods.Get(t.Context(), "web", nil); return err },
				"create": func() error { _, err := pods.Create(t.Context(), object("Pod", "web"), nil); return err },
				"list":   func() error { _, err := pods.ListPage(t.Context(), nil); return err },
				"watch":  func() error { _, err := pods.OpenWatch(t.Context(), nil); return err },
				"deletecollection": func() error {
					_, err := pods.DeleteCollection(t.Context(), nil, nil)
					return err
				},
			} {
				err := call()
				require.ErrorContains(t, err, c.want, verb)
				assert.True(t, apierrors.IsNotFound(err), verb)
				var status *apierrors.StatusError
				assert.ErrorAs(t, err, &status, verb)
			}
			before := server.Discoveries()
			resource(t, client, "pods")
			assert.Greater(t, server.Discoveries(), before, "discovery is refreshed")
		})
	}
}

func TestApplyConflictError_NotForOtherConflicts(t *testing.T) {
	for _, details := range []string{`{}`, `{"causes":[{"reason":"FieldValueInvalid","field":"x"}]}`} {
		_, err := failingPods(t, 409, metav1.StatusReasonConflict, "modified", details).Update(t.Context(), object("Pod", "web"), nil)
		var explained *dynamic.ApplyConflictError
		assert.NotErrorAs(t, err, &explained)
		assert.True(t, apierrors.IsConflict(err))
	}
}

func TestFieldValidationError_Fields(t *testing.T) {
	const strict = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: "
	for message, want := range map[string]dynamic.FieldValidationError{
		strict + `unknown field "spec.foo"`:                                                                                       {Unknown: []string{"spec.foo"}},
		strict + `duplicate field "a", unknown field "spec.b\"c, d", unknown field "e"`:                                           {Unknown: []string{`spec.b"c, d`, "e"}, Duplicate: []string{"a"}},
		strict + `json patch duplicate field "[0].value", json patch unknown field "[1].x"`:                                       {Unknown: []string{"[1].x"}, Duplicate: []string{"[0].value"}},
		strict + "yaml: unmarshal errors:\n  line 5: key \"other\" already set in map":                                            {Duplicate: []string{"other"}},
		strict + "yaml: unmarshal errors:\n  line 5: key \"other\" already set in map, unknown field \"u\"":                       {Unknown: []string{"u"}, Duplicate: []string{"other"}},
		strict + "yaml: unmarshal errors:\n  line 5: key \"a\" already set in map\n  line 7: key \"b\" already set in map":        {Duplicate: []string{"a", "b"}},
		` "" is invalid: patch: Invalid value: "strict decoding error: \"password\"": strict decoding error: unknown field "foo"`: {Unknown: []string{"foo"}},
		"failed to create typed patch object (/web; v1, Kind=Pod): .spec.foo: field not declared in schema":                       {Unknown: []string{"spec.foo"}},
		"failed to create typed patch object (a/b; v1, Kind=Pod): errors:\n  .spec.foo: field not declared in schema\n  .bar: field not declared in schema": {
			Unknown: []string{"spec.foo", "bar"}},
		// The same in one line, as the connection may make it.
		"failed to create typed patch object (a/b; v1, Kind=Pod): errors: .spec.foo: field not declared in schema   .bar: field not declared in schema": {
			Unknown: []string{"spec.foo", "bar"}},
		strict + "yaml: unmarshal errors: line 5: key \"a\" already set in map   line 7: key \"b\" already set in map": {Duplicate: []string{"a", "b"}},
	} {
		t.Run(message, func(t *testing.T) {
			pods := failingPods(t, 400, metav1.StatusReasonBadRequest, message, "")
			_, err := pods.Patch(t.Context(), "web", types.MergePatchType, []byte(`{}`), nil)
			var fields *dynamic.FieldValidationError
			require.ErrorAs(t, err, &fields)
			assert.Equal(t, want.Unknown, fields.Unknown)
			assert.Equal(t, want.Duplicate, fields.Duplicate)
			assert.True(t, apierrors.IsBadRequest(err))
			assert.NotContains(t, err.Error(), "password", "the object's own text")
			phrase := "strict decoding error: "
			if strings.HasPrefix(message, "failed") {
				phrase = ": field not declared in schema"
			}
			assert.ErrorContains(t, err, phrase, "callers know the error by it")
			for _, field := range append(want.Unknown, want.Duplicate...) {
				assert.ErrorContains(t, err, fmt.Sprintf("field %q", field))
			}
			assert.True(t, strings.HasPrefix(err.Error(), "PATCH /api/v1/namespaces/home/pods/web: "), err.Error())
		})
	}
}

func TestFieldValidationError_NotForOtherMessages(t *testing.T) {
	for _, message := range []string{
		"", "strict decoding error: ", "strict decoding error: unknown field", `strict decoding error: unknown field "a`,
		`strict decoding error: unknown field "a", and more`, `strict decoding error: unknown field "a"; unknown field "b"`,
		"failed to create typed patch object (/web; v1, Kind=Pod): .spec.replicas: expected numeric (int or float), got string",
		"failed to create typed patch object (/web; v1, Kind=Pod): errors:\n  .a: field not declared in schema\n  .b: expected string",
		"failed to create typed patch object (/web; v1, Kind=Pod): errors: .a: expected string .b: field not declared in schema",
		"failed to create typed patch object ", "failed to create typed patch object (/web; v1, Kind=Pod): ",
	} {
		_, err := failingPods(t, 400, metav1.StatusReasonBadRequest, message, "").Create(t.Context(), object("Pod", "web"), nil)
		var fields *dynamic.FieldValidationError
		assert.NotErrorAs(t, err, &fields, message)
		assert.True(t, apierrors.IsBadRequest(err), message)
	}
}

// TestErrors_SanitizeText puts hostile text into every error of this package that quotes a server or an object.
func TestErrors_SanitizeText(t *testing.T) {
	const nasty = `\u001b[31mred\nline\u202e`
	long := nasty + strings.Repeat("x", 100_000)
	failure := func(reason, message, details string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"` + reason + `","message":"` + message + `","details":` + details + `}`
	}
	get := func(pods *dynamic.Resource) error {
		_, err := pods.Get(t.Context(), "web", nil)
		return err
	}
	typed := func(pods *dynamic.Resource) error {
		_, err := dynamic.As[guest](pods).Get(t.Context(), "web", nil)
		return err
	}
	for name, c := range map[string]struct {
		code int
		body string
		call func(*dynamic.Resource) error
	}{
		"an ERROR event": {200, `{"type":"ERROR","object":` + failure(nasty, long, `{"name":"`+nasty+`","causes":[{"message":"`+nasty+`"}]}`) + `}`,
			func(pods *dynamic.Resource) error { return drain(pods.Watch(t.Context(), nil)) }},
		"an apply conflict": {409, failure("Conflict", "m", `{"causes":[{"reason":"FieldManagerConflict","message":"conflict with `+long+`","field":"`+long+`"}]}`),
			func(pods *dynamic.Resource) error {
				_, err := pods.Apply(t.Context(), object("Pod", "web"), &metav1.ApplyOptions{FieldManager: "me"})
				return err
			}},
		"a budget": {429, failure("TooManyRequests", "m", `{"causes":[{"reason":"DisruptionBudget","message":"`+long+`"}]}`),
			func(pods *dynamic.Resource) error { return pods.Evict(t.Context(), "web", nil) }},
		"unknown fields": {400, failure("BadRequest", "strict decoding error: "+strings.Repeat(`unknown field \"`+strings.Repeat("y", 5000)+`\", `, 40)+`unknown field \"z\"`, `{}`),
			func(pods *dynamic.Resource) error {
				_, err := pods.Update(t.Context(), object("Pod", "web"), nil)
				return err
			}},
		"not a list": {200, `{"kind":"` + long + `","apiVersion":"` + nasty + `"}`, func(pods *dynamic.Resource) error { return drain(pods.List(t.Context(), nil)) }},
		"not a table": {200, `{"kind":"` + long + `","apiVersion":"` + nasty + `"}`, func(pods *dynamic.Resource) error {
			_, err := pods.Tables("").ListPage(t.Context(), nil)
			return err
		}},
		"without kind":       {200, `{"apiVersion":"` + nasty + `","metadata":{"name":"` + long + `"}}`, get},
		"invalid apiVersion": {200, `{"kind":"Pod","apiVersion":"a/b/c` + long + `"}`, get},
		"not a time":         {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + long + `","creationTimestamp":"` + long + `"}}`, typed},
		"not a string":       {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"` + long + `":1}}}`, typed},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, response{status: c.code, body: c.body})
			err := c.call(pods)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 32<<10)
			for _, bad := range []string{"\x1b", "\n", "\u202e"} {
				assert.NotContains(t, err.Error(), bad)
			}
		})
	}
}
