package kubeconfig_test

import (
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEdit_KeepsWhatMergeKeysMean has a token for each entry that merges others, in each order that YAML allows. What
// the tokens are before the edit is what kubectl reads.
func TestEdit_KeepsWhatMergeKeysMean(t *testing.T) {
	for name, user := range map[string]string{
		"own field, then merged":     "{token: own, <<: *a}",
		"merged, then own field":     "{<<: *a, token: own}",
		"a list":                     "{<<: [*a, *b]}",
		"a list, then own field":     "{<<: [*a, *b], token: own}",
		"own field, then a list":     "{token: own, <<: [*b, *a]}",
		"two keys":                   "{<<: *a, <<: *b}",
		"merged by the merged":       "{<<: *c}",
		"the merged, then own":       "{<<: *c, token: own}",
		"merged between own fields":  "{token: own, <<: *d, username: own}",
		"a quoted key is no merge":   `{"<<": *a, token: own}`,
		"own field twice and merged": "{token: own, token: second, <<: *b}",
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, `
users:
- name: a
  user: &a {token: AAA}
- name: b
  user: &b {token: BBB, username: b}
- name: c
  user: &c {token: CCC, <<: *a}
- name: d
  user: &d {username: d, <<: [*b, *c]}
- name: x
  user: `+user+"\n")
			before, err := kubeconfig.Read(path)
			require.NoError(t, err)
			require.NoError(t, kubeconfig.Edit(t.Context(), path, func(d *kubeconfig.Document) error {
				return d.Put(&kubeconfig.File{CurrentContext: "x", Users: map[string]kubeconfig.User{"a": {Username: "new"}}})
			}))
			after, err := kubeconfig.Read(path)
			require.NoError(t, err)
			assert.Equal(t, kubeconfig.User{Username: "new", Origin: path}, after.Users["a"])
			after.Users["a"] = before.Users["a"]
			assert.Equal(t, before.Users, after.Users)
		})
	}
}

func TestEdit_MergedServerStays(t *testing.T) {
	path := written(t, `
x-staging: &staging
  server: https://staging.example:6443
clusters:
- name: prod
  cluster:
    server: https://prod.example:6443
    <<: *staging
`)
	require.NoError(t, kubeconfig.Edit(t.Context(), path, choose("a")))
	file, err := kubeconfig.Read(path)
	require.NoError(t, err)
	assert.Equal(t, "https://staging.example:6443", file.Clusters["prod"].Server, "as kubectl read it before")
}
