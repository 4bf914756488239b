package dynamic_test

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestErrors_ShowOthersTextSafely has text of a server or an object in every error of this package that quotes any.
func TestErrors_ShowOthersTextSafely(t *testing.T) {
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
		"no list": {200, `{"kind":"` + long + `","apiVersion":"` + nasty + `"}`, func(pods *dynamic.Resource) error { return drain(pods.List(t.Context(), nil)) }},
		"no table": {200, `{"kind":"` + long + `","apiVersion":"` + nasty + `"}`, func(pods *dynamic.Resource) error {
			_, err := pods.Tables("").List(t.Context(), nil)
			return err
		}},
		"no kind":       {200, `{"apiVersion":"` + nasty + `","metadata":{"name":"` + long + `"}}`, get},
		"no apiVersion": {200, `{"kind":"Pod","apiVersion":"a/b/c` + long + `"}`, get},
		"no time":       {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + long + `","creationTimestamp":"` + long + `"}}`, typed},
		"no text":       {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"` + long + `":1}}}`, typed},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, answer{status: c.code, body: c.body})
			err := c.call(pods)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 32<<10)
			for _, bad := range []string{"\x1b", "\n", "\u202e"} {
				assert.NotContains(t, err.Error(), bad)
			}
		})
	}
}
