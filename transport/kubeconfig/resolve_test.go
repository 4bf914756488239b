package kubeconfig_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func parse(t *testing.T, data string) *kubeconfig.File {
	t.Helper()
	file, err := kubeconfig.Parse([]byte(data), "")
	require.NoError(t, err)
	return file
}

func TestResolve_EmptyFile(t *testing.T) {
	_, err := parse(t, "").Resolve(nil)
	require.ErrorIs(t, err, kubeconfig.ErrNoContext)
}

func TestResolve_ErrorNamesMissingAndExisting(t *testing.T) {
	file := parse(t, `
clusters: [{name: c, cluster: {server: https://c}}, {name: empty, cluster: {}}]
contexts:
- {name: no-cluster, context: {cluster: x, user: ann}}
- {name: unnamed-cluster, context: {user: ann}}
- {name: no-user, context: {cluster: c, user: ann}}
- {name: no-server, context: {cluster: empty}}
- {name: anonymous, context: {cluster: c, namespace: store}}`)

	for want, opts := range map[string]*kubeconfig.ResolveOptions{
		"contexts: anonymous, no-cluster":                       nil,
		`context "typo" does not exist`:                         {Context: "typo"},
		`cluster "x" does not exist (clusters: c, empty)`:       {Context: "no-cluster"},
		`context "unnamed-cluster" has no cluster`:              {Context: "unnamed-cluster"},
		`user "ann" does not exist (users: none)`:               {Context: "no-user"},
		`context "no-server": cluster "empty": server: missing`: {Context: "no-server"},
		`cluster "typo" does not exist`:                         {Context: "anonymous", Cluster: "typo"},
		`user "typo" does not exist`:                            {Context: "anonymous", User: "typo"},
	} {
		_, err := file.Resolve(opts)
		assert.ErrorContains(t, err, want)
	}
	resolved, err := file.Resolve(&kubeconfig.ResolveOptions{Context: "anonymous"})
	require.NoError(t, err)
	assert.Equal(t, kubeconfig.User{}, resolved.User)
	assert.Equal(t, "store", resolved.Namespace)
}

func TestResolve_Options(t *testing.T) {
	file := parse(t, `
current-context: a
clusters: [{name: one, cluster: {server: https://one}}, {name: two, cluster: {server: https://two}}]
users: [{name: ann, user: {token: a}}, {name: bob, user: {token: b}}]
contexts:
- {name: a, context: {cluster: one, user: ann, namespace: store}}
- {name: b, context: {cluster: two}}`)
	none := parse(t, `clusters: [{name: one, cluster: {server: https://one}}]`)
	for name, tc := range map[string]struct {
		file *kubeconfig.File
		opts *kubeconfig.ResolveOptions
		want [5]string // context, cluster, user, namespace, token
	}{
		"nothing":             {file, nil, [5]string{"a", "one", "ann", "store", "a"}},
		"context":             {file, &kubeconfig.ResolveOptions{Context: "b"}, [5]string{"b", "two", "", "default", ""}},
		"cluster":             {file, &kubeconfig.ResolveOptions{Cluster: "two"}, [5]string{"a", "two", "ann", "store", "a"}},
		"user":                {file, &kubeconfig.ResolveOptions{User: "bob"}, [5]string{"a", "one", "bob", "store", "b"}},
		"namespace":           {file, &kubeconfig.ResolveOptions{Namespace: "x"}, [5]string{"a", "one", "ann", "x", "a"}},
		"all":                 {file, &kubeconfig.ResolveOptions{Context: "b", Cluster: "one", User: "bob", Namespace: "x"}, [5]string{"b", "one", "bob", "x", "b"}},
		"cluster, no context": {none, &kubeconfig.ResolveOptions{Cluster: "one"}, [5]string{"", "one", "", "default", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tc.file.Resolve(tc.opts)
			require.NoError(t, err)
			assert.Equal(t, tc.want, [5]string{r.ContextName, r.ClusterName, r.UserName, r.Namespace, r.User.Token.Reveal()})
		})
	}
}

func TestResolve_Origins(t *testing.T) {
	dir := t.TempDir()
	var files []*kubeconfig.File
	for name, data := range map[string]string{
		"clusters": `clusters: [{name: c, cluster: {server: https://c}}]`,
		"users":    `users: [{name: u, user: {token: t}}]`,
		"contexts": `{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]}`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		file, err := kubeconfig.Read(path)
		require.NoError(t, err)
		files = append(files, file)
	}
	r, err := kubeconfig.Merge(files...).Resolve(nil)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "clusters"), r.Cluster.Origin)
	assert.Equal(t, filepath.Join(dir, "users"), r.User.Origin)
	assert.Equal(t, filepath.Join(dir, "contexts"), r.ContextOrigin)
}

// one returns a kubeconfig whose current context has a cluster and a user with these fields.
func one(cluster, user string) string {
	return `{current-context: x, clusters: [{name: c, cluster: {` + cluster + `}}], users: [{name: u, user: {` + user + `}}],
contexts: [{name: x, context: {cluster: c, user: u}}]}`
}

func TestResolve_CredentialsThatKubectlUses(t *testing.T) {
	const exec = `exec: {command: login, apiVersion: client.authentication.k8s.io/v1beta1, installHint: "a\x1bb\nc"}`
	const oidc = `auth-provider: {name: oidc, config: {idp-issuer-url: https://i, client-id: c}}`
	wantExec := &kubeconfig.Exec{Command: "login", APIVersion: kubeconfig.ExecV1Beta1,
		InteractiveMode: kubeconfig.InteractiveIfAvailable, InstallHint: "aU+001Bb\nc"}
	wantOIDC := &kubeconfig.AuthProvider{Name: "oidc", Config: map[string]kubeconfig.Secret{
		"idp-issuer-url": kubeconfig.NewSecret("https://i"), "client-id": kubeconfig.NewSecret("c")}}
	for name, tc := range map[string]struct {
		server, user string
		want         kubeconfig.User
	}{
		"exec, with what it left out":  {"https://c", exec, kubeconfig.User{Exec: wantExec}},
		"a token before exec":          {"https://c", "token: t, " + exec, kubeconfig.User{Token: kubeconfig.NewSecret("t")}},
		"basic before exec":            {"https://c", "username: u, password: p, " + exec, kubeconfig.User{Username: "u", Password: kubeconfig.NewSecret("p")}},
		"a certificate before exec":    {"https://c", "client-certificate-data: YQ==, client-key-data: Yg==, " + exec, kubeconfig.User{ClientCertificateData: []byte("a"), ClientKeyData: kubeconfig.NewSecretData([]byte("b"))}},
		"oidc":                         {"https://c", oidc, kubeconfig.User{AuthProvider: wantOIDC}},
		"oidc and a certificate":       {"https://c", "client-certificate-data: YQ==, client-key-data: Yg==, " + oidc, kubeconfig.User{ClientCertificateData: []byte("a"), ClientKeyData: kubeconfig.NewSecretData([]byte("b")), AuthProvider: wantOIDC}},
		"a token before oidc":          {"https://c", "token: t, " + oidc, kubeconfig.User{Token: kubeconfig.NewSecret("t")}},
		"no key without a certificate": {"https://c", "client-key-data: Yg==, client-key: /missing", kubeconfig.User{}},
		"no password without a user":   {"https://c", "password: p", kubeconfig.User{}},
		"a token and a missing file":   {"https://c", "token: t, tokenFile: /missing", kubeconfig.User{Token: kubeconfig.NewSecret("t"), TokenFile: "/missing"}},
		"nothing without TLS":          {"http://c", "token: t, as: bob, as-groups: [g], " + exec, kubeconfig.User{Impersonate: "bob", ImpersonateGroups: []string{"g"}}},
		"nothing without a scheme":     {"localhost:8080", "token: t, as: bob", kubeconfig.User{Impersonate: "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := parse(t, one("server: '"+tc.server+"'", tc.user))
			before := file.Users["u"].Exec
			r, err := file.Resolve(nil)
			require.NoError(t, err)
			assert.Equal(t, tc.want, r.User)
			if before != nil {
				assert.Empty(t, before.InteractiveMode, "the file is not changed")
			}
		})
	}
}

func TestResolve_ServerURL(t *testing.T) {
	for server, want := range map[string]string{
		"https://c:6443":         "https://c:6443",
		"https://c:6443/prefix/": "https://c:6443/prefix/",
		"https://c/prefix?a=b#c": "https://c/prefix",
		"10.0.0.1:8080":          "http://10.0.0.1:8080",
		"localhost:8080":         "http://localhost:8080",
		"localhost":              "http://localhost",
	} {
		r, err := parse(t, one("server: '"+server+"'", "")).Resolve(nil)
		require.NoError(t, err)
		assert.Equal(t, want, r.Cluster.Server)
	}
}

func TestResolve_RejectsWhatKubectlRejects(t *testing.T) {
	const https = "server: https://c"
	const exec = `exec: {command: login, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never`
	for name, tc := range map[string]struct{ cluster, user, want string }{
		"no URL":                     {"server: 'https://[271828'", "", `cluster "c": server: not a URL`},
		"proxy of another scheme":    {https + ", proxy-url: 'ftp://u:271828@p'", "", `cluster "c": proxy-url: unknown scheme "ftp" (use http, https or socks5)`},
		"proxy that is no URL":       {https + ", proxy-url: 'http://u:271828@%zz'", "", `cluster "c": proxy-url: not a URL`},
		"authority twice":            {https + ", certificate-authority: /dev/null, certificate-authority-data: MjcxODI4", "", `cluster "c": certificate-authority: certificate-authority-data is set, too (delete one)`},
		"missing authority":          {https + ", certificate-authority: /missing", "", `cluster "c": certificate-authority: open /missing: no such file`},
		"insecure authority":         {https + ", certificate-authority-data: YQ==, insecure-skip-tls-verify: true", "", `cluster "c": insecure-skip-tls-verify: a certificate authority is set, too`},
		"token and basic":            {https, "token: '271828', username: a", `user "u": token: username or password is set, too`},
		"token and password":         {https, "token: '271828', password: a", `user "u": token: username or password is set, too`},
		"token file and basic":       {https, "tokenFile: /dev/null, username: a", `user "u": tokenFile: username is set, too`},
		"missing token file":         {https, "tokenFile: /missing", `user "u": tokenFile: open /missing: no such file or directory (relative names start at the kubeconfig's folder)`},
		"certificate twice":          {https, "client-certificate: /dev/null, client-certificate-data: YQ==, client-key-data: YQ==", `user "u": client-certificate: client-certificate-data is set, too`},
		"key twice":                  {https, "client-certificate: /dev/null, client-key: /dev/null, client-key-data: YQ==", `user "u": client-key: client-key-data is set, too`},
		"no key":                     {https, "client-certificate-data: YQ==", `user "u": client-key: a client certificate needs its key (set client-key or client-key-data)`},
		"missing certificate":        {https, "client-certificate: /missing, client-key: /dev/null", `user "u": client-certificate: open /missing: no such file`},
		"missing key":                {https, "client-certificate: /dev/null, client-key: /missing", `user "u": client-key: open /missing: no such file`},
		"groups of nobody":           {https, "as-groups: [a]", `user "u": as: missing: as-uid, as-groups and as-user-extra need a user to impersonate`},
		"exec and auth-provider":     {https, exec + "}, auth-provider: {name: oidc}", `user "u": exec: auth-provider is set, too`},
		"exec without command":       {https, "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", `user "u": exec.command: missing`},
		"exec without apiVersion":    {https, "exec: {command: a, interactiveMode: Never}", `user "u": exec.apiVersion: missing (set client.authentication.k8s.io/v1`},
		"exec of another apiVersion": {https, "exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}", `user "u": exec.apiVersion: unknown version "client.authentication.k8s.io/v1alpha1"`},
		"exec without mode":          {https, "exec: {command: a, apiVersion: client.authentication.k8s.io/v1}", `user "u": exec.interactiveMode: missing (set Never, IfAvailable or Always)`},
		"exec with a bad mode":       {https, "exec: {command: a, apiVersion: client.authentication.k8s.io/v1, interactiveMode: never}", `user "u": exec.interactiveMode: unknown mode "never"`},
		"exec with a nameless env":   {https, exec + ", env: [{value: '271828'}]}", `user "u": exec.env: variable 1 has no name`},
		"a forgotten auth-provider":  {https, "auth-provider: {name: gcp, config: {access-token: '271828'}}", `user "u": auth-provider.name: kubectl no longer supports "gcp", only oidc`},
		"oidc without issuer":        {https, "auth-provider: {name: oidc, config: {client-id: a}}", `user "u": auth-provider.config: idp-issuer-url is missing`},
		"without TLS":                {"server: http://c", "client-certificate-data: YQ==", `user "u": client-key: a client certificate needs its key`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, one(tc.cluster, tc.user)).Resolve(nil)
			var invalid *kubeconfig.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, "x", invalid.Context)
			assert.ErrorContains(t, err, `context "x": `+tc.want)
			assert.NotContains(t, err.Error(), "271828")
		})
	}
}

func TestResolve_ListsAllProblems(t *testing.T) {
	_, err := parse(t, one("", "client-certificate: /missing, as-uid: a")).Resolve(nil)
	var invalid *kubeconfig.InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Len(t, invalid.Problems, 4)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, 3, strings.Count(err.Error(), "; "))
}

func TestResolve_RejectsEmptyTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := parse(t, one("server: https://c", "tokenFile: '"+path+"'")).Resolve(nil)
	assert.ErrorContains(t, err, `user "u": tokenFile: `+path+` is empty`)
}

func TestResolve_ErrorNamesOrigin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(one("server: https://c", "tokenFile: 100%missing")), 0o600))
	file, err := kubeconfig.Read(path)
	require.NoError(t, err)
	_, err = file.Resolve(nil)
	assert.ErrorContains(t, err, `user "u" in `+path+`: tokenFile: open `)
	assert.ErrorContains(t, err, filepath.Join(filepath.Dir(path), "100%missing"))
}

func TestResolve_IgnoresTLSFieldsWithoutTLS(t *testing.T) {
	r, err := parse(t, one("server: http://c, certificate-authority-data: YQ==, insecure-skip-tls-verify: true, proxy-url: 'http://p'",
		"tokenFile: /missing, auth-provider: {name: gcp}")).Resolve(nil)
	require.NoError(t, err)
	assert.Equal(t, kubeconfig.Cluster{Server: "http://c", ProxyURL: kubeconfig.NewSecret("http://p")}, r.Cluster)
	assert.Equal(t, kubeconfig.User{}, r.User)
}
