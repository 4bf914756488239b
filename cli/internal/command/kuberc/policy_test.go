package kuberc

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPreference_CheckPlugin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no mode of executable files")
	}
	folder := t.TempDir()
	for _, name := range []string{"good", "bad"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o700))
	}
	t.Setenv("PATH", folder)
	list := &Preference{CredentialPluginPolicy: allowlist, CredentialPluginAllowlist: []Allowance{{Command: "good"}, {Name: "none"}}}
	require.NoError(t, list.checkPlugin("good"))
	require.NoError(t, list.checkPlugin(filepath.Join(folder, "good")), "the same file")
	require.EqualError(t, list.checkPlugin("bad"), `credential plugin "bad" is not allowed: it is not in the allowlist of kuberc`)
	require.ErrorContains(t, list.checkPlugin("none"), "not found")
	deny := &Preference{CredentialPluginPolicy: denyAll}
	require.EqualError(t, deny.checkPlugin("good"), `credential plugin "good" is not allowed: the policy in kuberc is "DenyAll"`)
	assert.NoError(t, (&Preference{}).checkPlugin("bad"))
}

func TestSetOptions_PolicyAfterAllowlist(t *testing.T) {
	preference := &Preference{}
	for _, o := range []*setOptions{
		{section: pluginSection, policy: allowlist, allowing: []string{"command=good"}},
		{section: pluginSection, policy: denyAll},
		{section: pluginSection, policy: allowlist, allowing: []string{"command=good"}},
		{section: pluginSection, policy: allowAll},
	} {
		require.NoError(t, o.validate())
		require.NoError(t, o.setPolicy(preference))
		require.NoError(t, preference.validate(), o.policy)
	}
}
