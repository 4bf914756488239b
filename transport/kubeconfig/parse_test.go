package kubeconfig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// everything has every field of v1 Config, and an unknown one in each place.
const everything = `
apiVersion: v1
kind: Config
current-context: shop
preferences:
  colors: true
  extensions: [{name: p, extension: {theme: dark}}]
extensions:
- {name: example.org/tool, extension: {last: 3}}
unknown-at-the-top: {kept: true}
clusters:
- name: shop
  cluster:
    server: https://127.0.0.1:6443
    tls-server-name: kubernetes
    insecure-skip-tls-verify: true
    certificate-authority: certs/ca.crt
    certificate-authority-data: Y2E=
    proxy-url: socks5://127.0.0.1:1080
    disable-compression: true
    extensions:
    - {name: client.authentication.k8s.io/exec, extension: {audience: shop}}
    something-new: {kept: true}
users:
- name: ann
  user:
    client-certificate: certs/ann.crt
    client-certificate-data: Y2VydA==
    client-key: certs/ann.key
    client-key-data: a2V5
    token: t0ken
    tokenFile: token
    as: bob
    as-uid: "7"
    as-groups: [staff, "yes"]
    as-user-extra: {example.org/scopes: [a, b]}
    username: ann
    password: "12345"
    auth-provider:
      name: oidc
      config: {client-id: anykind, idp-issuer-url: https://issuer, id-token: i, refresh-token: r}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/login
      args: [--for, shop]
      env: [{name: REGION, value: north}]
      installHint: brew install login
      provideClusterInfo: true
      interactiveMode: Never
      something-new: kept
    extensions: [{name: u, extension: 1}]
    something-new: kept
contexts:
- name: shop
  context:
    cluster: shop
    user: ann
    namespace: store
    extensions: [{name: c}]
    something-new: kept
`

func TestParse_AllFieldsAndPaths(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(everything), "/etc/kube")
	require.NoError(t, err)

	assert.Equal(t, &kubeconfig.File{
		CurrentContext: "shop",
		Preferences:    kubeconfig.Preferences{Colors: true, Extensions: kubeconfig.Extensions{"p": json.RawMessage(`{"theme":"dark"}`)}},
		Extensions:     kubeconfig.Extensions{"example.org/tool": json.RawMessage(`{"last":3}`)},
		Clusters: map[string]kubeconfig.Cluster{"shop": {
			Server: "https://127.0.0.1:6443", TLSServerName: "kubernetes", InsecureSkipTLSVerify: true,
			CertificateAuthority: "/etc/kube/certs/ca.crt", CertificateAuthorityData: []byte("ca"),
			ProxyURL: kubeconfig.NewSecret("socks5://127.0.0.1:1080"), DisableCompression: true,
			Extensions: kubeconfig.Extensions{kubeconfig.ExecExtension: json.RawMessage(`{"audience":"shop"}`)},
		}},
		Users: map[string]kubeconfig.User{"ann": {
			ClientCertificate: "/etc/kube/certs/ann.crt", ClientCertificateData: []byte("cert"),
			ClientKey: "/etc/kube/certs/ann.key", ClientKeyData: kubeconfig.NewSecretData([]byte("key")),
			Token: kubeconfig.NewSecret("t0ken"), TokenFile: "/etc/kube/token", Username: "ann", Password: kubeconfig.NewSecret("12345"),
			Impersonate: "bob", ImpersonateUID: "7", ImpersonateGroups: []string{"staff", "yes"},
			ImpersonateUserExtra: map[string][]string{"example.org/scopes": {"a", "b"}},
			AuthProvider: &kubeconfig.AuthProvider{Name: "oidc", Config: map[string]kubeconfig.Secret{
				"client-id": kubeconfig.NewSecret("anykind"), "idp-issuer-url": kubeconfig.NewSecret("https://issuer"),
				"id-token": kubeconfig.NewSecret("i"), "refresh-token": kubeconfig.NewSecret("r")}},
			Exec: &kubeconfig.Exec{
				APIVersion: kubeconfig.ExecV1, Command: "/etc/kube/bin/login", Args: []string{"--for", "shop"},
				Env: []kubeconfig.EnvVar{{Name: "REGION", Value: kubeconfig.NewSecret("north")}}, InstallHint: "brew install login",
				ProvideClusterInfo: true, InteractiveMode: kubeconfig.InteractiveNever},
			Extensions: kubeconfig.Extensions{"u": json.RawMessage("1")},
		}},
		Contexts: map[string]kubeconfig.Context{"shop": {
			Cluster: "shop", User: "ann", Namespace: "store", Extensions: kubeconfig.Extensions{"c": json.RawMessage("null")},
		}},
	}, file)
}

func TestParse_BareCommandStaysForPATH(t *testing.T) {
	for command, want := range map[string]string{
		"login": "login", "./login": "/etc/kube/login", "../login": "/etc/login", "/bin/login": "/bin/login",
	} {
		file, err := kubeconfig.Parse([]byte(`users: [{name: a, user: {exec: {command: "`+command+`"}}}]`), "/etc/kube")
		require.NoError(t, err)
		assert.Equal(t, want, file.Users["a"].Exec.Command)
	}
}

func TestParse_WithoutDirKeepsNames(t *testing.T) {
	file := parse(t, "users: [{name: a, user: {tokenFile: ./t, exec: {command: ./login}}}]")
	assert.Equal(t, "./login", file.Users["a"].Exec.Command)
	assert.Equal(t, "./t", file.Users["a"].TokenFile)
}

func TestParse_AcceptsWhatKubectlAccepts(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                   "",
		"white space":               "\n\n",
		"a comment":                 "# empty",
		"null":                      "null",
		"null lists":                "clusters: null\nusers:\ncontexts: ~",
		"null entries":              "clusters: [null]\nusers: [{name: a, user: null}]",
		"no kind":                   "current-context: a",
		"a second document":         "kind: Config\n---\nkind: Pod",
		"a field twice":             "kind: Pod\nkind: Config",
		"empty names":               "users: [{name: '', user: {token: a}}]",
		"one name in several lists": "users: [{name: a}]\nclusters: [{name: a}]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(data), "")
			assert.NoError(t, err)
		})
	}
}

func TestParse_FieldNamesAreCaseSensitive(t *testing.T) {
	file, err := kubeconfig.Parse([]byte("Current-Context: a\nusers: [{name: a, user: {Token: x, tokenfile: y}}]"), "")
	require.NoError(t, err)
	assert.Empty(t, file.CurrentContext)
	assert.Equal(t, kubeconfig.User{}, file.Users["a"])
}

func TestParse_YAML11(t *testing.T) {
	file, err := kubeconfig.Parse([]byte("clusters: [{name: a, cluster: {insecure-skip-tls-verify: yes, disable-compression: on}}]"), "")
	require.NoError(t, err)
	assert.True(t, file.Clusters["a"].InsecureSkipTLSVerify)
	assert.True(t, file.Clusters["a"].DisableCompression)
}

func TestParse_ErrorsHavePositionsAndNoValues(t *testing.T) {
	for name, tc := range map[string]struct {
		data         string
		line, column int
		want         string
	}{
		"an open list":           {"kind: Config\nusers: [a,\n", 2, 0, "did not find expected node content"},
		"a mapping in a value":   {"kind: Config\nusers: a: 271828", 2, 0, "mapping values are not allowed in this context"},
		"in the first line":      {"kind: Config: x", 1, 0, "mapping values are not allowed in this context"},
		"a tab":                  {"users:\n\t- name: a", 2, 0, "found character that cannot start any token"},
		"an open quote":          {"users:\n- name: \"271828\n  user: {}\n", 3, 0, "found unexpected end of stream"},
		"a wrong indentation":    {"users:\n- name: a\n  user:\n    token: a\n   as: b\n", 5, 0, "did not find expected"},
		"a control character":    {"kind: Config\nusers: \x01", 2, 0, "control characters are not allowed"},
		"a star without quotes":  {"users:\n- name: a\n  user:\n    password: *271828", 4, 0, "put the value in quotes"},
		"a key that is a list":   {"? [271828]\n: b", 0, 0, "field names must be plain text"},
		"a list":                 {"[1, 2]", 1, 1, "it is a list, want a mapping"},
		"a text":                 {"271828", 1, 1, "it is a number, want a mapping"},
		"another kind":           {"apiVersion: v1\nkind: Pod", 2, 7, `its kind is "Pod", not "Config"`},
		"another version":        {"apiVersion: v2", 1, 13, `its apiVersion is "v2"`},
		"a mapping of users":     {"users:\n  ann: {}", 2, 3, `field "users" is a mapping, want a list`},
		"users that are texts":   {"users: [271828]", 1, 8, "is a number, want a mapping"},
		"a name that is a list":  {"users:\n- name: []", 2, 9, `entry 1 of users: field "name" is a list, want a string`},
		"a second of a name":     {"users:\n- name: a\n- name: a", 3, 9, `a second entry of users is named "a"`},
		"a numeric secret":       {"users: [{name: ann, user: {password: 271828}}]", 1, 38, `user "ann": field "password" is a number, want a string (put it in quotes)`},
		"a bool for a text":      {"users: [{name: ann, user: {token: yes}}]", 1, 35, `user "ann": field "token" is a bool, want a string (put it in quotes)`},
		"a text for a bool":      {"clusters: [{name: c, cluster: {insecure-skip-tls-verify: \"true\"}}]", 1, 58, `cluster "c": field "insecure-skip-tls-verify" is a string, want a bool`},
		"deep down":              {"users:\n- name: ann\n  user:\n    exec:\n      args: 271828", 5, 13, `user "ann": field "args" is a number, want a list`},
		"text for a mapping":     {"contexts:\n- name: a\n  context: 271828", 3, 12, `context "a": field "context" is a number, want a mapping`},
		"broken base64":          {"users:\n- name: ann\n  user: {client-key-data: '271828!'}", 3, 27, `user "ann": field "client-key-data" is not base64 (inline data is the PEM file in base64, on one line; a file's name goes into "client-key")`},
		"a wrong extension list": {"contexts:\n- name: a\n  context:\n    extensions: {a: 271828}", 4, 17, `context "a": field "extensions": it must be a list`},
		"an extension twice":     {"extensions:\n- name: a\n- name: a", 2, 1, `two extensions are named "a"`},
		"NaN":                    {"preferences: {x: .nan}", 0, 0, "not a kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(tc.data), "")
			var parseError *kubeconfig.ParseError
			require.ErrorAs(t, err, &parseError)
			assert.ErrorContains(t, err, tc.want)
			assert.Equal(t, [2]int{tc.line, tc.column}, [2]int{parseError.Line, parseError.Column}, err.Error())
			assert.NotContains(t, err.Error(), "271828")
		})
	}
}

func TestRead_ErrorNamesFileAndPosition(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod"), 0o600))
	_, err := kubeconfig.Read(path)
	require.EqualError(t, err, path+`:2:7: not a kubeconfig: its kind is "Pod", not "Config"`)
	_, err = kubeconfig.Read(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = kubeconfig.Read(filepath.Dir(path))
	require.ErrorContains(t, err, filepath.Dir(path))
}

func TestRead_RelativeNamesAndOrigin(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("config", []byte(`
users: [{name: a, user: {tokenFile: sub/token}}]
clusters: [{name: c}]
contexts: [{name: x}]`), 0o600))
	file, err := kubeconfig.Read("config")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(here, "sub/token"), file.Users["a"].TokenFile)
	for _, origin := range []string{file.Users["a"].Origin, file.Clusters["c"].Origin, file.Contexts["x"].Origin} {
		assert.Equal(t, filepath.Join(here, "config"), origin)
	}
}
