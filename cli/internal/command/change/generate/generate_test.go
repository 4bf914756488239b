package generate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/unstructured"
)

// generated runs the generator with flags.
func generated(t *testing.T, g *Generator, name string, flags ...string) (*unstructured.Object, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	if g.AddFlags != nil {
		g.AddFlags(fs)
	}
	require.NoError(t, fs.Parse(flags))
	env := &Environment{
		Warn:     func(string, ...any) {},
		Resource: func(_ context.Context, name string) (string, string, error) { return "", name, nil },
		Object: func(context.Context, string) (*unstructured.Object, error) {
			return unstructured.Decode([]byte(`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"nightly","uid":"u"},
				"spec":{"jobTemplate":{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"backoffLimit":3}}}}`))
		},
	}
	return g.Generate(t.Context(), env, name, fs.Args())
}

func TestJob_FromCronJob(t *testing.T) {
	obj, err := generated(t, job(), "now", "--from=cronjob/nightly")
	require.NoError(t, err)
	data, err := unstructured.Encode(obj)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"now","labels":{"a":"b"},
		"annotations":{"c":"d","cronjob.kubernetes.io/instantiate":"manual"},
		"ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"nightly","uid":"u","controller":true}]},
		"spec":{"backoffLimit":3},"status":{}}`, string(data))
}

func TestConfigMap_FilesAndFolders(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.bin"), []byte{0xff, 0}, 0o600))
	obj, err := generated(t, configMap(), "c", "--from-file="+folder, "--from-file=key="+filepath.Join(folder, "a.txt"))
	require.NoError(t, err)
	assert.Equal(t, object{"a.txt": "text", "key": "text"}, obj.Object["data"])
	assert.Equal(t, object{"b.bin": "/wA="}, obj.Object["binaryData"])
}

func TestTLSSecret_ChecksPair(t *testing.T) {
	folder := t.TempDir()
	cert := filepath.Join(folder, "cert.pem")
	key := filepath.Join(folder, "key.pem")
	certificate, private := credentials.NewCertificate(t, "web", time.Now().Add(time.Hour))
	require.NoError(t, os.WriteFile(cert, certificate, 0o600))
	require.NoError(t, os.WriteFile(key, private, 0o600))
	obj, err := generated(t, tlsSecret(), "s", "--cert="+cert, "--key="+key)
	require.NoError(t, err)
	assert.Equal(t, "kubernetes.io/tls", obj.Object["type"])
	assert.Len(t, obj.Object["data"], 2)
	_, err = generated(t, tlsSecret(), "s", "--cert="+key, "--key="+key)
	assert.Error(t, err)
}

func TestGenerate_Errors(t *testing.T) {
	for _, c := range []struct {
		generator *Generator
		flags     []string
		want      string
	}{
		{configMap(), []string{"--from-literal=a=1", "--from-literal=a=2"}, "another key by that name already exists"},
		{configMap(), []string{"--from-literal=a"}, "invalid literal source a, expected key=value"},
		{configMap(), []string{"--from-env-file=x", "--from-literal=a=1"}, "from-env-file cannot be combined"},
		{genericSecret(), []string{"--from-literal=a b=1"}, "is not valid key name for a Secret"},
		{tlsSecret(), []string{"--cert=x"}, "key and cert must be specified"},
		{dockerSecret(), []string{"--docker-username=u"}, "either --from-file or the combination"},
		{job(), nil, "either --image or --from must be specified"},
		{role(), []string{"--verb=get"}, "at least one resource must be specified"},
		{role(), []string{"--resource=pods"}, "at least one verb must be specified"},
		{clusterRole(), []string{"--verb=list", "--non-resource-url=/x"}, "invalid verb: 'list' for nonResourceURL"},
		{clusterRole(), []string{"--verb=get", "--non-resource-url=x"}, "nonResourceURL should start with /"},
		{roleBinding(), []string{"--role=a", "--clusterrole=b"}, "exactly one of clusterrole or role must be specified"},
		{roleBinding(), []string{"--role=a", "--serviceaccount=x"}, "serviceaccount must be <namespace>:<name>"},
		{quota(), []string{"--hard=cpu"}, "Invalid argument syntax cpu"},
		{quota(), []string{"--scopes=a,,b"}, "invalid resource quota scope"},
		{disruptionBudget(), []string{"--selector=a=b", "--min-available=10Gb"}, "invalid format specified for min-available"},
		{ingress(), []string{"--rule=example.com"}, "rule example.com is invalid"},
		{externalNameService(), []string{"--external-name=_"}, "invalid service external name _"},
		{clusterIPService(), nil, "at least one tcp port specifier must be provided"},
		{clusterIPService(), []string{"--tcp=80:-"}, "must"},
	} {
		_, err := generated(t, c.generator, "name", c.flags...)
		assert.ErrorContains(t, err, c.want, "%q", c.flags)
	}
}
