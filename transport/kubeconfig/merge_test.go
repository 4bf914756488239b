package kubeconfig_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestMerge_FirstFileWins(t *testing.T) {
	first, err := kubeconfig.Parse([]byte(`
users: [{name: ann, user: {token: first}}]
contexts: [{name: a, context: {cluster: c, user: ann}}]
extensions: [{name: x, extension: 1}]`), "/one")
	require.NoError(t, err)
	second, err := kubeconfig.Parse([]byte(`
current-context: a
preferences: {colors: true}
users: [{name: ann, user: {token: second, username: ann}}, {name: bob, user: {tokenFile: bob}}]
clusters: [{name: c, cluster: {server: https://c}}]
extensions: [{name: x, extension: 2}, {name: z, extension: 3}]`), "/two")
	require.NoError(t, err)

	merged := kubeconfig.Merge(nil, first, second)

	assert.Equal(t, "a", merged.CurrentContext, "of the first file that has one")
	assert.Equal(t, kubeconfig.User{Token: kubeconfig.NewSecret("first")}, merged.Users["ann"], "without fields of the second file")
	assert.Equal(t, "/two/bob", merged.Users["bob"].TokenFile)
	assert.Equal(t, kubeconfig.Extensions{"x": json.RawMessage("1"), "z": json.RawMessage("3")}, merged.Extensions)
	assert.True(t, merged.Preferences.Colors)
	assert.Len(t, first.Extensions, 1, "the input is not changed")
	resolved, err := merged.Resolve(nil)
	require.NoError(t, err)
	assert.Equal(t, "https://c", resolved.Cluster.Server)
	assert.Equal(t, "default", resolved.Namespace)
}
