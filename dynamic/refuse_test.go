package dynamic_test

import (
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRefusedError_Classified(t *testing.T) {
	client, server := script(t, podReply)
	pods, bindings := resource(t, client, "pods"), resource(t, client, "bindings")
	_, noSub := pods.Sub("scale").Get(t.Context(), "web", nil)
	noEviction := resource(t, client, "nodes").Evict(t.Context(), "n", nil)
	_, noVerb := bindings.Get(t.Context(), "web", nil)
	_, noVerbOfSub := pods.Sub("status").Create(t.Context(), object("Pod", "web"), nil)
	noWatch := drain(bindings.Watch(t.Context(), nil))
	_, noName := pods.Get(t.Context(), "", nil)
	noSelector := drain(pods.List(t.Context(), &metav1.ListOptions{LabelSelector: "a in b"}))
	_, noObject := pods.Update(t.Context(), nil, nil)
	for _, c := range []struct {
		name              string
		err               error
		notFound, notVerb bool
	}{
		{"an unserved subresource", noSub, true, false},
		{"an unserved eviction", noEviction, true, false},
		{"an unserved verb", noVerb, false, true},
		{"an unserved verb of a subresource", noVerbOfSub, false, true},
		{"an unserved watch", noWatch, false, true},
		{"an empty name", noName, false, false},
		{"a selector", noSelector, false, false},
		{"no object", noObject, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var refused *dynamic.RefusedError
			require.ErrorAs(t, c.err, &refused)
			assert.Equal(t, c.notFound, apierrors.IsNotFound(c.err))
			assert.Equal(t, c.notFound, retry.IsPathNotFound(c.err))
			assert.False(t, retry.IsObjectNotFound(c.err), "it is no answer about an object")
			assert.Equal(t, c.notVerb, apierrors.IsMethodNotSupported(c.err))
			assert.True(t, retry.IsTerminal(c.err))
			assert.False(t, retry.IsDenied(c.err))
			var answered *apierrors.StatusError
			assert.NotErrorAs(t, c.err, &answered, "no server has answered")
			assert.ErrorContains(t, c.err, refused.Unwrap().Error())
		})
	}
	assert.Empty(t, server.seen())
	assert.EqualError(t, (&dynamic.RefusedError{Verb: "get", Resource: "pods", Reason: "no"}), "get pods: no")
	assert.NoError(t, (&dynamic.RefusedError{}).Unwrap())
	var refused *dynamic.RefusedError
	require.ErrorAs(t, noSelector, &refused)
	assert.EqualError(t, refused.Unwrap(), "unable to parse requirement: found 'b' expected: '('")
}
