package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// rootPath is the path of the main module. Module paths are rootPath + "/" + folder.
const rootPath = "github.com/anykind/anykind"

// goModule is a Go module of the repository.
type goModule struct {
	path      string
	folder    string // relative to the top of the repository; "." for the main module
	published bool
	requires  []string // paths of modules of the repository
	replaces  bool
}

// tag returns the git tag of a version of the module.
func (m *goModule) tag(version string) string {
	if m.folder == "." {
		return version
	}
	return m.folder + "/" + version
}

// readModules returns the modules in .ci/modules, each after its requirements.
func readModules(root string) ([]*goModule, error) {
	list, err := os.Open(filepath.Join(root, ".ci", "modules"))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	modules := map[string]*goModule{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 4 || fields[1] != "users" && fields[1] != "developers" {
			return nil, fmt.Errorf("read .ci/modules: %q is not FOLDER users|developers COMPONENTS MINUTES", lines.Text())
		}
		m := &goModule{folder: fields[0], published: fields[1] == "users"}
		if err := m.readGoMod(root); err != nil {
			return nil, err
		}
		modules[m.path] = m
	}
	return sortModules(modules)
}

func (m *goModule) readGoMod(root string) error {
	file, err := parseGoMod(filepath.Join(root, m.folder, "go.mod"))
	if err != nil {
		return err
	}
	m.path = file.Module.Mod.Path
	for _, required := range file.Require {
		if isOwn(required.Mod.Path) {
			m.requires = append(m.requires, required.Mod.Path)
		}
	}
	m.replaces = len(file.Replace) > 0
	if m.published && m.replaces {
		return fmt.Errorf("module %s is published and has replace directives, with which nobody can install its programs", m.path)
	}
	return nil
}

func parseGoMod(path string) (*modfile.File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, content, nil)
}

// isOwn reports whether a module path belongs to this repository.
func isOwn(path string) bool { return path == rootPath || strings.HasPrefix(path, rootPath+"/") }

// sortModules sorts modules by depth and path. depth = 1 + max(depth of requirements), or 0 without requirements.
func sortModules(modules map[string]*goModule) ([]*goModule, error) {
	const visiting = -1
	depths := map[string]int{}
	var visit func(path string) error
	visit = func(path string) error {
		m, found := modules[path]
		if !found {
			return fmt.Errorf(".ci/modules lacks %s, which other modules require", path)
		}
		if depth, visited := depths[path]; visited {
			if depth == visiting {
				return fmt.Errorf("module %s requires itself through other modules", path)
			}
			return nil
		}
		depths[path] = visiting
		depth := 0
		for _, required := range m.requires {
			if err := visit(required); err != nil {
				return err
			}
			if m.published && !modules[required].published {
				return fmt.Errorf("module %s is published and requires %s, which is not", path, required)
			}
			depth = max(depth, depths[required]+1)
		}
		depths[path] = depth
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if err := visit(path); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b *goModule) int {
		return cmp.Or(cmp.Compare(depths[a.path], depths[b.path]), cmp.Compare(a.path, b.path))
	}), nil
}

// published returns the modules for users, without the developers' modules.
func published(modules []*goModule) []*goModule {
	return slices.DeleteFunc(slices.Clone(modules), func(m *goModule) bool { return !m.published })
}
