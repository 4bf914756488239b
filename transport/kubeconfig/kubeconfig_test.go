package kubeconfig_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const shop = `
apiVersion: v1
kind: Config
current-context: shop
preferences: {colors: true}
clusters:
- name: shop
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority: certs/ca.crt
    tls-server-name: kubernetes
    something-new: {ignored: true}
- name: shop
  cluster: {server: https://second-of-the-same-name}
users:
- name: ann
  user:
    client-certificate-data: Y2VydA==
    client-key-data: a2V5
    tokenFile: token
contexts:
- name: shop
  context: {cluster: shop, user: ann, namespace: store}
- name: bare
  context: {cluster: shop}
`

func TestParseReadsEveryEntryAndResolvesPathsAgainstTheFilesFolder(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(shop), "/etc/kube")
	require.NoError(t, err)

	assert.Equal(t, "shop", file.CurrentContext)
	assert.Equal(t, kubeconfig.Cluster{
		Server: "https://127.0.0.1:6443", TLSServerName: "kubernetes", CertificateAuthority: "/etc/kube/certs/ca.crt",
	}, file.Clusters["shop"], "the first of two entries with one name wins")
	assert.Equal(t, kubeconfig.User{
		ClientCertificateData: []byte("cert"), ClientKeyData: []byte("key"), TokenFile: "/etc/kube/token",
	}, file.Users["ann"])
}

func TestParseRefusesWhatIsNoKubeconfigWithoutQuotingIt(t *testing.T) {
	for name, tc := range map[string]struct{ data, says string }{
		"not yaml":         {"a: [", "not a kubeconfig"},
		"another kind":     {"kind: Pod", `its kind is "Pod"`},
		"a list":           {"[1, 2]", "not a kubeconfig"},
		"a numeric secret": {"users: [{name: ann, user: {password: 271828}}]", `entry "ann": field "password" does not hold a string`},
		"broken base64":    {"users: [{name: ann, user: {client-key-data: '271828!'}}]", `entry "ann": a field whose name ends in -data is not base64`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(tc.data), "")
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), "271828")
		})
	}
}

func TestParseOfNothingIsAnEmptyFile(t *testing.T) {
	file, err := kubeconfig.Parse(nil, "")
	require.NoError(t, err)
	_, err = file.Resolve("")
	require.ErrorIs(t, err, kubeconfig.ErrNoContext)
}

func TestReadNamesTheFileThatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte("kind: Pod"), 0o600))
	_, err := kubeconfig.Read(path)
	require.ErrorContains(t, err, path)
	_, err = kubeconfig.Read(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestMergeTakesEachEntryWholeFromTheFirstFileThatHasIt(t *testing.T) {
	first, err := kubeconfig.Parse([]byte(`
users: [{name: ann, user: {token: first}}]
contexts: [{name: a, context: {cluster: c, user: ann}}]`), "/one")
	require.NoError(t, err)
	second, err := kubeconfig.Parse([]byte(`
current-context: a
users: [{name: ann, user: {token: second, username: ann}}, {name: bob, user: {tokenFile: bob}}]
clusters: [{name: c, cluster: {server: https://c}}]`), "/two")
	require.NoError(t, err)

	merged := kubeconfig.Merge(nil, first, second)

	assert.Equal(t, "a", merged.CurrentContext, "the first file that names a current context decides")
	assert.Equal(t, kubeconfig.User{Token: "first"}, merged.Users["ann"], "no field of the second file's ann seeps in")
	assert.Equal(t, "/two/bob", merged.Users["bob"].TokenFile)
	resolved, err := merged.Resolve("")
	require.NoError(t, err)
	assert.Equal(t, "https://c", resolved.Cluster.Server)
	assert.Equal(t, "default", resolved.Namespace)
}

func TestResolveSaysWhatIsMissingAndWhatThereIs(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(`
clusters: [{name: c, cluster: {server: https://c}}, {name: empty, cluster: {}}]
contexts:
- {name: no-cluster, context: {cluster: x, user: ann}}
- {name: no-user, context: {cluster: c, user: ann}}
- {name: no-server, context: {cluster: empty}}
- {name: anonymous, context: {cluster: c, namespace: store}}`), "")
	require.NoError(t, err)

	for context, says := range map[string]string{
		"":           "contexts: anonymous, no-cluster, no-server, no-user",
		"typo":       `context "typo" does not exist`,
		"no-cluster": `cluster "x" does not exist (clusters: c, empty)`,
		"no-user":    `user "ann" does not exist (users: none)`,
		"no-server":  `cluster "empty" has no server`,
	} {
		_, err := file.Resolve(context)
		assert.ErrorContains(t, err, says)
	}
	resolved, err := file.Resolve("anonymous")
	require.NoError(t, err)
	assert.Equal(t, kubeconfig.User{}, resolved.User)
	assert.Equal(t, "store", resolved.Namespace)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(shop))
	f.Add([]byte(`{"kind":"Config","users":[{"name":"a","user":null},null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := kubeconfig.Parse(data, "/dir")
		if err != nil {
			return
		}
		if resolved, err := kubeconfig.Merge(file, file).Resolve(""); err == nil && resolved.Cluster.Server == "" {
			t.Fatal("resolved to a cluster without a server")
		}
	})
}
