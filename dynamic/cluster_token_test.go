package dynamic_test

import (
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAnIssuedTokenIsGoodUntilWhatItIsBoundToIsGone(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	web, err := pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	accounts := resource(t, client, "sa").In(namespace)
	token, err := accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Lifetime: 20 * time.Minute, BoundTo: web})
	require.NoError(t, err)
	assert.True(t, token.Expires.After(time.Now()))
	require.ErrorContains(t, whoAmI(t, token), "system:serviceaccount:"+namespace+":robot")

	elsewhere, err := accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Audiences: []string{"vault"}})
	require.NoError(t, err)
	require.True(t, apierrors.IsUnauthorized(whoAmI(t, elsewhere)), "it is not for the API server")

	require.NoError(t, pods.Evict(t.Context(), "web", nil))
	web.SetUID("another")
	_, err = accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{BoundTo: web})
	require.Error(t, err, "the pod is gone")
	_, err = accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Lifetime: time.Second})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = accounts.CreateToken(t.Context(), "nobody", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// whoAmI is the refusal of what a token's bearer may not do, which names the bearer.
func whoAmI(t *testing.T, token *dynamic.Token) error {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(&transport.Config{Server: cfg.Server, CAFile: cfg.CAFile, CAData: cfg.CAData, Token: transport.NewSecret(token.Token)})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/api/v1/nodes"})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), token.Token)
	return err
}
