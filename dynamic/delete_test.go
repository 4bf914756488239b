package dynamic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// TestDelete_Responses covers responses that are neither objects nor lists.
func TestDelete_Responses(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		body   string
		failed string // the error's text; "" for success
		is     func(error) bool
	}{
		"nothing":                     {200, ``, "", nil},
		"no content":                  {204, ``, "", nil},
		"accepted, white space":       {202, " \n", "", nil},
		"an empty object":             {202, `{}`, "", nil},
		"null":                        {200, "null\n", "", nil},
		"a Status":                    {200, `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "", nil},
		"a Status without apiVersion": {200, `{"kind":"Status","status":"Success"}`, "", nil},
		"a Status without kind":       {200, `{"status":"Success","metadata":{}}`, "", nil},
		"metadata alone":              {200, `{"metadata":{"name":"web"}}`, "", nil},
		"a Status that failed":        {200, `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`, "no", apierrors.IsForbidden},
		"a login page":                {200, `<html>`, "invalid JSON", nil},
		"a word":                      {200, `ok`, "invalid JSON", nil},
		"a broken null":               {200, `nul`, "invalid JSON", nil},
		"a broken object":             {200, `{`, "unexpected EOF", nil},
		"two objects":                 {200, `{}{}`, "invalid JSON", nil},
		"a list":                      {200, `[]`, "should begin", nil},
		"items without a kind":        {200, `{"items":[]}`, "'Kind' is missing", nil},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, response{status: c.code, body: c.body}, response{status: c.code, body: c.body})
			deleted, deleteErr := pods.Delete(t.Context(), "web", nil)
			page, collectionErr := pods.DeleteCollection(t.Context(), nil, nil)
			if c.failed != "" {
				require.Error(t, deleteErr)
				require.Error(t, collectionErr)
				assert.Contains(t, strings.ToLower(deleteErr.Error()+collectionErr.Error()), strings.ToLower(c.failed))
				assert.Nil(t, deleted)
				assert.Nil(t, page)
				if c.is != nil {
					assert.True(t, c.is(deleteErr), "%v", deleteErr)
					assert.True(t, c.is(collectionErr), "%v", collectionErr)
				}
				return
			}
			require.NoError(t, deleteErr)
			require.NoError(t, collectionErr)
			assert.Nil(t, deleted.Object)
			assert.Equal(t, metav1.StatusSuccess, deleted.Status.Status)
			assert.Equal(t, &dynamic.Page[unstructured.Object]{}, page)
		})
	}
}

func TestDeleteCollection_LongResponses(t *testing.T) {
	long := `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"` + strings.Repeat("x", 5000) + `"},"items":[{"metadata":{"name":"web"}}]}`
	for _, end := range []int{len(long), 1 << 10, 3000, len(long) - 1} {
		pods, _ := exchanging(t, respond(long[:end]))
		page, err := pods.DeleteCollection(t.Context(), nil, nil)
		if end == len(long) {
			require.NoError(t, err)
			assert.Equal(t, []string{"web"}, namesOf(page.Items))
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", end)
	}
	pods, _ := serve(t, map[string]http.HandlerFunc{"": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{}")
	}})
	_, err := pods.DeleteCollection(t.Context(), nil, nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a body that is cut is not a bare one")
	_, err = pods.Delete(t.Context(), "web", nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestDelete_ObjectOrStatus(t *testing.T) {
	client, _ := script(t, `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","uid":"u"}}`, podReply)
	pods := resource(t, client, "pods")
	deleted, err := pods.Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Object)
	assert.EqualValues(t, "u", deleted.Status.Details.UID)

	deleted, err = pods.Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Status)
	assert.Equal(t, "web", deleted.Object.GetName())
}

func TestDeleteCollection_Response(t *testing.T) {
	client, _ := script(t, listReply, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"kind":"pods"}}`,
		podReply, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"na`)
	pods := resource(t, client, "pods")
	page, err := pods.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"web"}, namesOf(page.Items))
	assert.Equal(t, "9", page.ResourceVersion)

	page, err = pods.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, &dynamic.Page[unstructured.Object]{}, page, "a Status names no object")

	for range 2 {
		_, err = pods.DeleteCollection(t.Context(), nil, nil)
		require.ErrorContains(t, err, "deletecollection pods: DELETE http://server.test")
	}
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
