package flags_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/transport"
)

func TestConnection_AddFlagsKeepsFlagsOfProgram(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	size := fs.IntP("size", "s", 1, "")
	user := fs.String("user", "", "")
	c := flags.NewConnection()
	c.AddFlags(fs, "password", "-n")
	(&flags.Files{}).AddFlags(fs, "")
	require.NoError(t, fs.Parse([]string{"-s", "3", "--user=ann", "--server=http://a", "--namespace=shop"}))
	assert.Equal(t, 3, *size)
	assert.Equal(t, "ann", *user)
	assert.Empty(t, c.User)
	assert.Equal(t, "http://a", c.Server)
	assert.Equal(t, "shop", c.NamespaceFlag)
	assert.Nil(t, fs.Lookup("password"))
	assert.Nil(t, fs.ShorthandLookup("n"))
	assert.NotNil(t, fs.ShorthandLookup("f"))
}

func TestSelection_AddFlagsKeepsFlagsOfProgram(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	all := fs.BoolP("everything", "A", false, "")
	dryRun := fs.Bool("dry-run", false, "")
	selection := &flags.Selection{}
	selection.AddFlags(fs, "field-selector")
	selection.AddLabelFlag(fs)
	selection.AddChunkFlag(fs)
	selection.AddChunkFlag(fs)
	write := &flags.Write{}
	for range 2 {
		write.AddDryRunFlag(fs)
		write.AddFieldManagerFlag(fs)
		write.AddValidateFlag(fs)
	}
	require.NoError(t, fs.Parse([]string{"-A", "-l", "a=b", "--dry-run", "--chunk-size=7", "--field-manager=me"}))
	assert.True(t, *all)
	assert.False(t, selection.AllNamespaces)
	assert.Equal(t, "a=b", selection.LabelSelector)
	assert.Equal(t, int64(7), selection.ChunkSize)
	assert.Nil(t, fs.Lookup("field-selector"))
	if *dryRun {
		write.DryRun = flags.DryRunServer
	}
	require.NoError(t, write.Complete(t.Logf))
	assert.Equal(t, flags.DryRunServer, write.DryRun)
	assert.Equal(t, "me", write.Defaults().FieldManager)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestConnection_RequestTimeoutWithWrappedTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c := connection(t, "--server="+server.URL, "--request-timeout=50ms")
	defer c.Close()
	cfg, err := c.Config(t.Context())
	require.NoError(t, err)
	calls := 0
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			calls++
			return next.RoundTrip(r)
		})
	}
	conn, err := c.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.Do(t.Context(), &transport.Request{Method: http.MethodGet, Path: "/version"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "--request-timeout")
	assert.Positive(t, calls)
}
