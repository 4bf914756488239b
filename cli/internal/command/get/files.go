package get

import (
	"context"
	"os"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/manifest"
)

// targets returns the objects of the arguments or of the files.
func (c *getCommand) targets(ctx context.Context, args []string) ([]command.Target, error) {
	if c.files.IsEmpty() {
		return c.Targets(ctx, args, &command.TargetOptions{Selection: c.selection, AllowAll: true})
	}
	return c.FileTargets(ctx, &c.files, args, &c.selection)
}

// isSingleItem reports whether a single object is printed alone instead of in a list: an object named by arguments, or from a
// single file.
func (c *getCommand) isSingleItem() bool {
	if c.files.IsEmpty() {
		return true
	}
	if len(c.files.Paths) != 1 || c.files.Paths[0] == manifest.Stdin {
		return false
	}
	info, err := os.Stat(c.files.Paths[0])
	return err == nil && !info.IsDir()
}
