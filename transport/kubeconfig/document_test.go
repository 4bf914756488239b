package kubeconfig_test

import (
	"encoding/json"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// changed is a document after a change.
func changed(t *testing.T, data string, change func(*kubeconfig.Document) error) string {
	t.Helper()
	d, err := kubeconfig.ParseDocument([]byte(data), "")
	require.NoError(t, err)
	require.NoError(t, change(d))
	out, err := d.Bytes()
	require.NoError(t, err)
	return string(out)
}

func TestPutAddsAndReplacesEntriesAndKeepsWhatItDoesNotKnow(t *testing.T) {
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
`, func(d *kubeconfig.Document) error {
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

func TestPutOfAnotherExecProgramDropsTheOldOnesFields(t *testing.T) {
	got := changed(t, "users: [{name: a, user: {exec: {command: old, future: gone}}}]", func(d *kubeconfig.Document) error {
		return d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{"a": {Exec: &kubeconfig.Exec{Command: "new"}}}})
	})
	assert.Equal(t, "users: [{name: a, user: {exec: {\"command\": \"new\"}}}]\n", got)
}

func TestPutChangesOneEntryOfTwoThatShareAnAnchor(t *testing.T) {
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
`, func(d *kubeconfig.Document) error {
		return d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{"a": {Token: kubeconfig.NewSecret("new")}, "c": {Token: kubeconfig.NewSecret("d")}}})
	})
	file, err := kubeconfig.Parse([]byte(got), "")
	require.NoError(t, err)
	assert.Equal(t, map[string]kubeconfig.User{"a": {Token: kubeconfig.NewSecret("new")}, "b": {Token: kubeconfig.NewSecret("t"), Username: "u"}, "c": {Token: kubeconfig.NewSecret("d")}}, file.Users)
}

func TestSetCurrentContextChoosesOrUnchooses(t *testing.T) {
	for _, name := range []string{"a", "", "no", "1", "a: b", "#", "ünï", "a\nb", "-", "~", "0x1f", "1:30", "<<", "\u0085", "\u007f", " "} {
		got := changed(t, "kind: Config", choose(name))
		file, err := kubeconfig.Parse([]byte(got), "")
		require.NoError(t, err, "%q", got)
		assert.Equal(t, name, file.CurrentContext)
	}
}

func TestDeleteContextLeavesClusterUserAndTheRest(t *testing.T) {
	got := changed(t, `current-context: a
clusters: [{name: a}]
contexts:
- name: a
  context: {cluster: a}
# about b
- name: b
  context: {cluster: a}
`, func(d *kubeconfig.Document) error { return d.DeleteContext("a") })
	assert.Equal(t, `current-context: a
clusters: [{name: a}]
contexts:
# about b
- name: b
  context: {cluster: a}
`, got)
}

func TestSetAuthProviderConfigSetsTokensAndKeepsTheRest(t *testing.T) {
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
`, func(d *kubeconfig.Document) error {
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

func TestJSONInOneLineStaysInOneLine(t *testing.T) {
	got := changed(t, `{"a":[1e3,true,null,"\u0041"],"b":{}}`, choose("c"))
	assert.Equal(t, `{"a":[1e3,true,null,"A"],"b":{},"current-context":"c"}`+"\n", got)
}

func TestADocumentSaysWhatItHoldsNow(t *testing.T) {
	d, err := kubeconfig.ParseDocument([]byte("users: [{name: a, user: {tokenFile: t}}]"), "/etc")
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
