package faultproxy

import (
	"math/rand/v2"
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func schedule(seed uint64, maxCut int) (all []fault) {
	rng := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a schedule that can be repeated
	for range 500 {
		all = append(all, draw(rng, maxCut))
	}
	return all
}

func TestDraw_DependsOnSeed(t *testing.T) {
	first := schedule(7, 4_000)
	again := schedule(7, 4_000)
	other := schedule(8, 4_000)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
}

func TestDraw_AllFaultsAndCuts(t *testing.T) {
	met := map[string]bool{}
	early := 0
	late := 0
	for _, f := range schedule(1, 1<<18) {
		met[f.name] = true
		assert.Less(t, f.cutAfter, 1<<18)
		if f.cut && f.cutAfter < 1<<14 {
			early++
		} else if f.cut && f.cutAfter > 1<<16 {
			late++
		}
	}
	for _, name := range []string{"410", "429", "500", "503", "drop", "delay", "cut", "half-close", "stall", "expiry", "end"} {
		assert.True(t, met[name], name)
	}
	assert.Greater(t, early, 20)
	assert.Greater(t, late, 20)
}

func TestProxy_PluginPrintsValidToken(t *testing.T) {
	valid, err := newCredential(t.TempDir())
	require.NoError(t, err)
	p := &Proxy{valid: valid}
	cfg, err := p.Config()
	require.NoError(t, err)
	printed := func() string {
		plugin := exec.CommandContext(t.Context(), cfg.Exec.Command)
		for _, variable := range cfg.Exec.Env {
			plugin.Env = append(plugin.Env, variable.Name+"="+variable.Value.Reveal())
		}
		output, err := plugin.Output()
		require.NoError(t, err)
		return string(output)
	}
	with := func(token string) *http.Request {
		return &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
	}
	first := valid.token
	assert.Contains(t, printed(), `"`+first+`"`)
	assert.True(t, p.isAuthenticated(with(first)))
	require.NoError(t, valid.expire())
	assert.False(t, p.isAuthenticated(with(first)))
	assert.Contains(t, printed(), `"`+valid.token+`"`)
	assert.True(t, p.isAuthenticated(with(valid.token)))
	assert.False(t, p.isAuthenticated(&http.Request{Header: http.Header{}}))
}
