package build

import (
	"encoding/json"
	"fmt"
	"strings"
)

// sourceModule is what the generated module needs to know of the module it
// builds, in the form `go mod edit -json` prints.
type sourceModule struct {
	Go      string
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path, Version string }
	}
}

func parseSourceModule(goModJSON []byte) (*sourceModule, error) {
	var m sourceModule
	if err := json.Unmarshal(goModJSON, &m); err != nil {
		return nil, fmt.Errorf("reading what `go mod edit -json` printed: %w", err)
	}
	return &m, nil
}

// generatedModule is the go.mod the binary is built in. Go ignores the replace
// lines of dependencies, so those that point into Kubernetes' own tree become
// replacements by the modules published from it.
func generatedModule(b Binary, source *sourceModule) string {
	var text strings.Builder
	goVersion := source.Go
	if goVersion == "" {
		goVersion = "1.26.0"
	}
	fmt.Fprintf(&text, "module build.local/sandbox\n\ngo %s\n\nrequire %s %s\n", goVersion, b.Module, b.Version)
	if !b.Staging {
		return text.String()
	}
	for _, r := range source.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/src/") {
			fmt.Fprintf(&text, "\nreplace %s => %s %s", r.Old.Path, r.Old.Path, b.stagingVersion())
		}
	}
	text.WriteByte('\n')
	return text.String()
}
