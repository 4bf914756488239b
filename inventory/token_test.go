package inventory_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
)

func TestCache_ForToken(t *testing.T) {
	const reviews = "POST /apis/authentication.k8s.io/v1/tokenreviews"
	tokenReview := func(status string) http.HandlerFunc {
		return scripted.JSON(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":` + status + `}`)
	}
	synctest.Test(t, func(t *testing.T) {
		server := shop()
		c, _ := start(t, server, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		var impersonated http.Header
		server.Handle("POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews", func(w http.ResponseWriter, r *http.Request) {
			impersonated = r.Header
			review(`{"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]}`)(w, r)
		})
		server.Handle("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review(`{"allowed":false}`))

		server.Handle(reviews, tokenReview(`{"authenticated":true,"user":{"username":"eve","uid":"u","groups":["a","b"],"extra":{"k":["v"]}}}`))
		first, err := c.ForToken(t.Context(), "token")
		require.NoError(t, err)
		page, err := first.Query(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"v1/pods a/web-1", "v1/pods a/web-2", "v1/pods b/cycle"}, namesOf(t, page))
		assert.Equal(t, "eve", impersonated.Get("Impersonate-User"))
		assert.Equal(t, "u", impersonated.Get("Impersonate-Uid"))
		assert.Equal(t, []string{"a", "b"}, impersonated.Values("Impersonate-Group"))
		assert.Equal(t, "v", impersonated.Get("Impersonate-Extra-K"))
		again, err := c.ForToken(t.Context(), "further")
		require.NoError(t, err)
		assert.Same(t, first, again, "the same user")
		server.Handle(reviews, tokenReview(`{"authenticated":true,"user":{"username":"eve","uid":"u","groups":["a"]}}`))
		changed, err := c.ForToken(t.Context(), "token")
		require.NoError(t, err)
		assert.NotSame(t, first, changed, "without a group")

		server.Handle(reviews, tokenReview(`{"authenticated":false,"user":{"username":"eve"}}`))
		_, err = c.ForToken(t.Context(), "token")
		assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
		server.Handle(reviews, tokenReview(`{"authenticated":true,"user":{}}`))
		_, err = c.ForToken(t.Context(), "token")
		require.ErrorContains(t, err, "review a token", "an empty name")
		server.Handle(reviews, scripted.Status(http.StatusForbidden, "Forbidden"))
		_, err = c.ForToken(t.Context(), "token")
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		sent := len(server.Requests())
		_, err = c.ForToken(t.Context(), "")
		assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
		assert.Len(t, server.Requests(), sent)
	})
}

func TestEntry_MarshalJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, graph(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		page, err := c.Query(t.Context(), &inventory.Query{UID: "p2"})
		require.NoError(t, err)
		text, err := json.Marshal(page.Entries)
		require.NoError(t, err)
		assert.JSONEq(t, `[{"apiVersion":"v1","resource":"pods","kind":"Pod","namespace":"a","name":"late","uid":"p2","readiness":"InProgress"}]`, string(text))
		edges, err := c.Edges(t.Context(), page.Entries[0].Object(), nil)
		require.NoError(t, err)
		text, err = json.Marshal(edges)
		require.NoError(t, err)
		assert.JSONEq(t, `[{"relation":"owner","field":"metadata.ownerReferences[0]","group":"apps","kind":"ReplicaSet","namespace":"a","name":"web",
			"error":"replicasets.apps \"web with the UID replaced\" not found"}]`, string(text))
	})
}
