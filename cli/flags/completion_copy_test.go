package flags_test

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConnection_CompleteCopyListsLocalFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("shop/inner", 0o755))
	for _, file := range []string{"shop.yaml", "shop/a.txt", ".hidden", "a\x1b[2J"} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	c := connection(t, "--server="+hostileServer(t).URL) // without pods
	defer c.Close()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for prefix, want := range map[string][]cobra.Completion{
		"": {"shop.yaml", "shop/"}, "shop": {"shop.yaml", "shop/"}, "shop/": {"shop/a.txt", "shop/inner/"}, "none/": nil,
	} {
		got, _ := c.CompleteCopy(cmd, nil, prefix)
		assert.Equal(t, want, got, prefix)
	}
	third, _ := c.CompleteCopy(cmd, []string{"a", "b"}, "")
	assert.Empty(t, third)
}
