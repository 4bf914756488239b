package edit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// changed returns a document after a change.
func changed(t *testing.T, data string, change func(*edit.Document) error) string {
	t.Helper()
	d, err := edit.Parse([]byte(data), "")
	require.NoError(t, err)
	require.NoError(t, change(d))
	out, err := d.Bytes()
	require.NoError(t, err)
	return string(out)
}

func TestDocument_PutKeepsUnknownFields(t *testing.T) {
	got := changed(t, `kind: Config
users:
- name: ann
  since: 2020 # of the entry
  user:
    token: old # by hand
    username: ann
    future: kept
    exec:
      command: login
      args: [a]
      future: kept
    extensions:
    - {name: x, extension: {a: 1}}
- name: bob
  user: {token: bobs}
clusters: null
`, func(d *edit.Document) error {
		return d.Put(&kubeconfig.File{
			Clusters: map[string]kubeconfig.Cluster{"c": {Server: "https://c", CertificateAuthorityData: []byte("ca"), DisableCompression: true}},
			Users: map[string]kubeconfig.User{"ann": {
				Token: kubeconfig.NewSecret("new"), Password: kubeconfig.NewSecret("null"),
				Exec:       &kubeconfig.Exec{Command: "login", Env: []kubeconfig.EnvVar{{Name: "A", Value: kubeconfig.NewSecret("1e3")}}},
				Extensions: kubeconfig.Extensions{"y": json.RawMessage(`[true,null,1.5]`)},
			}},
			Contexts:       map[string]kubeconfig.Context{"x": {Cluster: "c", User: "ann"}},
			CurrentContext: "x",
		})
	})
	assert.Equal(t, `kind: Config
users:
- name: ann
  since: 2020 # of the entry
  user:
    token: new # by hand
    future: kept
    exec:
      command: login
      future: kept
      env:
      - name: A
        value: "1e3"
    extensions:
    - {name: x, extension: {a: 1}}
    - name: "y"
      extension:
      - true
      - null
      - 1.5
    password: "null"
- name: bob
  user: {token: bobs}
clusters:
- name: c
  cluster:
    server: https://c
    certificate-authority-data: Y2E=
    disable-compression: true
contexts:
- name: x
  context:
    cluster: c
    user: ann
current-context: x
`, got)
}

func TestDocument_PutOtherExecDropsUnknownFields(t *testing.T) {
	got := changed(t, "users: [{name: a, user: {exec: {command: old, future: gone}}}]", func(d *edit.Document) error {
		return d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{"a": {Exec: &kubeconfig.Exec{Command: "new"}}}})
	})
	assert.Equal(t, "users: [{name: a, user: {exec: {\"command\": \"new\"}}}]\n", got)
}

func TestDocument_PutChangesOneOfSharedAnchors(t *testing.T) {
	got := changed(t, `
users:
- name: a
  user: &shared {token: t, username: u}
- name: b
  user: *shared
- name: c
  user:
    <<: *shared
    token: c
`, func(d *edit.Document) error {
		return d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{"a": {Token: kubeconfig.NewSecret("new")}, "c": {Token: kubeconfig.NewSecret("d")}}})
	})
	file, err := kubeconfig.Parse([]byte(got), "")
	require.NoError(t, err)
	assert.Equal(t, map[string]kubeconfig.User{"a": {Token: kubeconfig.NewSecret("new")}, "b": {Token: kubeconfig.NewSecret("t"), Username: "u"}, "c": {Token: kubeconfig.NewSecret("d")}}, file.Users)
}

func TestDocument_SetCurrentContext(t *testing.T) {
	for _, name := range []string{"a", "", "no", "1", "a: b", "#", "ünï", "a\nb", "-", "~", "0x1f", "1:30", "<<", "\u0085", "\u007f", " "} {
		got := changed(t, "kind: Config", setContext(name))
		file, err := kubeconfig.Parse([]byte(got), "")
		require.NoError(t, err, "%q", got)
		assert.Equal(t, name, file.CurrentContext)
	}
}

func TestDocument_DeleteContextKeepsClusterAndUser(t *testing.T) {
	got := changed(t, `current-context: a
clusters: [{name: a}]
contexts:
- name: a
  context: {cluster: a}
# about b
- name: b
  context: {cluster: a}
`, func(d *edit.Document) error { return d.DeleteContext("a") })
	assert.Equal(t, `current-context: a
clusters: [{name: a}]
contexts:
# about b
- name: b
  context: {cluster: a}
`, got)
}

func TestDocument_SetAuthProviderConfigKeepsOtherFields(t *testing.T) {
	got := changed(t, `users:
- name: ann
  user:
    auth-provider:
      name: oidc
      config:
        client-id: anykind
        id-token: old # from the browser
        future: kept
- name: bare
  user:
    auth-provider: {name: oidc}
`, func(d *edit.Document) error {
		require.NoError(t, d.SetAuthProviderConfig("bare", map[string]string{"id-token": "i"}))
		return d.SetAuthProviderConfig("ann", map[string]string{"id-token": "new", "refresh-token": "12"})
	})
	assert.Equal(t, `users:
- name: ann
  user:
    auth-provider:
      name: oidc
      config:
        client-id: anykind
        id-token: new # from the browser
        future: kept
        refresh-token: "12"
- name: bare
  user:
    auth-provider: {name: oidc, "config": {"id-token": "i"}}
`, got)
}

func TestDocument_BytesKeepsJSONOnOneLine(t *testing.T) {
	got := changed(t, `{"a":[1e3,true,null,"\u0041"],"b":{}}`, setContext("c"))
	assert.Equal(t, `{"a":[1e3,true,null,"A"],"b":{},"current-context":"c"}`+"\n", got)
}

func TestDocument_FileReturnsCurrentState(t *testing.T) {
	d, err := edit.Parse([]byte("users: [{name: a, user: {tokenFile: t}}]"), "/etc")
	require.NoError(t, err)
	d.SetCurrentContext("x")
	file, err := d.File()
	require.NoError(t, err)
	assert.Equal(t, "x", file.CurrentContext)
	assert.Equal(t, "/etc/t", file.Users["a"].TokenFile)
	out, err := d.Bytes()
	require.NoError(t, err)
	assert.Contains(t, string(out), "tokenFile: t", "what is written stays relative")
}

func TestDocument_PutWritesSecrets(t *testing.T) {
	d, err := edit.Parse(nil, "")
	require.NoError(t, err)
	secret := kubeconfig.NewSecret("xyzzy")
	user := kubeconfig.User{
		Token: secret, Password: secret, ClientKeyData: kubeconfig.NewSecretData([]byte("key")),
		Exec:         &kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: "login", Env: []kubeconfig.EnvVar{{Name: "N", Value: secret}}},
		AuthProvider: &kubeconfig.AuthProvider{Name: "oidc", Config: map[string]kubeconfig.Secret{"refresh-token": secret}},
		Extensions:   kubeconfig.Extensions{"e": []byte(`{"a":"xyzzy"}`)},
	}
	cluster := kubeconfig.Cluster{Server: "https://h", ProxyURL: kubeconfig.NewSecret("http://u:xyzzy@proxy")}
	require.NoError(t, d.Put(&kubeconfig.File{
		Users: map[string]kubeconfig.User{"ann": user}, Clusters: map[string]kubeconfig.Cluster{"c": cluster},
	}))
	written, err := d.Bytes()
	require.NoError(t, err)
	assert.NotContains(t, string(written), "REDACTED")
	read, err := d.File()
	require.NoError(t, err)
	assert.Equal(t, user, read.Users["ann"])
	assert.Equal(t, cluster, read.Clusters["c"])
}

// TestFile_KeepsMeaningOfMergeKeys merges tokens in each order that YAML allows. The tokens before the edit are those
// that kubectl reads.
func TestFile_KeepsMeaningOfMergeKeys(t *testing.T) {
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
			path := writeFile(t, `
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
			require.NoError(t, edit.File(t.Context(), path, func(d *edit.Document) error {
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

func TestFile_KeepsMergedServer(t *testing.T) {
	path := writeFile(t, `
x-staging: &staging
  server: https://staging.example:6443
clusters:
- name: prod
  cluster:
    server: https://prod.example:6443
    <<: *staging
`)
	require.NoError(t, edit.File(t.Context(), path, setContext("a")))
	file, err := kubeconfig.Read(path)
	require.NoError(t, err)
	assert.Equal(t, "https://staging.example:6443", file.Clusters["prod"].Server, "as kubectl read it before")
}

func TestDocument_DeleteClusterAndUser(t *testing.T) {
	const data = "clusters: [{name: a}, {name: b}]\nusers: [{name: a}, {name: b}]\ncontexts: [{name: x, context: {cluster: a, user: b}}]\n"
	got := changed(t, data, func(d *edit.Document) error {
		require.ErrorContains(t, d.DeleteCluster("none"), `delete cluster "none": not found`)
		require.ErrorContains(t, d.DeleteUser("none"), `delete user "none": not found`)
		require.NoError(t, d.DeleteCluster("a"))
		return d.DeleteUser("b")
	})
	assert.Equal(t, "clusters: [{name: b}]\nusers: [{name: a}]\ncontexts: [{name: x, context: {cluster: a, user: b}}]\n", got)
}

func TestDocument_RenameContextInPlace(t *testing.T) {
	const data = "contexts:\n- name: a # first\n  context: {cluster: c, future: kept}\n- name: b\ncurrent-context: a\n"
	got := changed(t, data, func(d *edit.Document) error {
		require.ErrorContains(t, d.RenameContext("none", "c"), `rename context "none": not found`)
		require.ErrorContains(t, d.RenameContext("a", "b"), `this file has a context "b"`)
		return d.RenameContext("a", "new")
	})
	assert.Equal(t, "contexts:\n- name: new # first\n  context: {cluster: c, future: kept}\n- name: b\ncurrent-context: a\n", got)
}

func TestDocument_PutKeepsRelativeFileNames(t *testing.T) {
	const data = "users:\n- name: a\n  user: {client-certificate: pki/c.crt, client-key: k.pem, exec: {command: ./login, future: kept}}\n" +
		"- name: b\n  user: {exec: {command: login}}\n"
	d, err := edit.Parse([]byte(data), t.TempDir())
	require.NoError(t, err)
	file, err := d.File()
	require.NoError(t, err)
	user := file.Users["a"]
	user.ClientKey = "/other/k.pem"
	file.Users["a"] = user
	require.NoError(t, d.Put(file))
	got, err := d.Bytes()
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(data, "k.pem", `"/other/k.pem"`, 1), string(got))
}
