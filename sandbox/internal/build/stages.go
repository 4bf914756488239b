//go:build unix

package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// stageFolders hold the life cycles kwok plays: nodes that are ready at once and
// stay so, pods that run, jobs that complete, objects that may be deleted.
var stageFolders = []string{"node/fast", "node/heartbeat", "pod/fast"}

// installStages copies kwok's own stages beside its binary, as one file.
func (c *Cache) installStages(kwok Binary, module *downloaded, scratch string) error {
	var all bytes.Buffer
	for _, folder := range stageFolders {
		files, err := filepath.Glob(module.folder("kustomize", "stage", filepath.FromSlash(folder), "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("reading kwok's stages: %w", err)
			}
			fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(text))
		}
	}
	if all.Len() == 0 {
		return fmt.Errorf("kwok %s has no stages where this sandbox looks (kustomize/stage)", kwok.Version)
	}
	unfinished := filepath.Join(scratch, "stages.yaml")
	if err := os.WriteFile(unfinished, all.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, c.StagesPath(kwok))
}
