package oracle

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clusterServices are services of the cluster itself.
const clusterServices = `
apiVersion: v1
kind: Service
metadata: {name: plain, labels: {kubernetes.io/cluster-service: "true"}}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: named, labels: {kubernetes.io/cluster-service: "true", kubernetes.io/name: Dashboard}}
spec: {ports: [{name: https, port: 8443}, {name: more, port: 1}]}
---
apiVersion: v1
kind: Service
metadata: {name: secure, labels: {kubernetes.io/cluster-service: "true"}}
spec: {ports: [{name: web, port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: http, labels: {kubernetes.io/cluster-service: "true"}}
spec: {ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless, labels: {kubernetes.io/cluster-service: "true"}}
spec: {clusterIP: None}
---
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {ports: [{port: 80}]}
`

func clusterCases() []oracleCase {
	return []oracleCase{
		{line: "cluster-info", readOnly: true},
		{line: "cluster-info -n $NS", setup: clusterServices},
		{line: "cluster-info --context limited", readOnly: true, fails: true},
		{line: "cluster-info --server=https://127.0.0.1:1", readOnly: true, fails: true, masks: []mask{{`(?m)^E\d{4}.*\n`, ""}}},
		{line: "cluster-info dump -o nonsense", readOnly: true, fails: true, differs: &difference{[]string{"stderr"}, "anyctl has the format jq, too"}},
		{line: "cluster-info dump --context limited", readOnly: true, fails: true, differs: &difference{
			[]string{"stdout", "stderr"}, "kubectl ends at the first error; anyctl dumps the rest, and reports each error",
		}},
	}
}

func TestClusterInfo_DumpedFiles(t *testing.T) {
	o := newOracle(t)
	for _, flags := range []string{"", " -o yaml"} {
		folders := map[*program]string{o.kubectl: t.TempDir(), o.anyctl: t.TempDir()}
		files := map[*program]map[string]any{}
		for program, folder := range folders {
			r := program.run(t, &oracleCase{line: "cluster-info dump --namespaces=$NS --output-directory=" + folder + flags}, o.fixtures, nil)
			require.Zero(t, r.code, r.stderr)
			assert.Equal(t, "Cluster info dumped to "+folder+"\n", r.stdout)
			files[program] = readDump(t, folder)
		}
		assert.Contains(t, files[o.anyctl], filepath.Join(o.fixtures, "solo", "logs.txt"))
		assert.Equal(t, files[o.kubectl], files[o.anyctl])
	}
}

// readDump returns the content of files: the items of JSON files, without fields that are empty or in kubectl's output only.
func readDump(t *testing.T, folder string) map[string]any {
	t.Helper()
	files := map[string]any{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name := strings.TrimPrefix(path, folder+"/")
		files[name] = string(data)
		switch filepath.Ext(path) {
		case ".yaml":
			files[name] = "a file"
		case ".json":
			var list struct{ Items []map[string]any }
			err = json.Unmarshal(data, &list)
			items := []any{}
			for _, item := range list.Items {
				delete(item, "kind") // of each item, in anyctl's output
				delete(item, "apiVersion")
				if base := filepath.Base(path); base == "nodes.json" || base == "events.json" { // their contents change
					item = item["metadata"].(map[string]any)
					delete(item, "resourceVersion")
				}
				items = append(items, withoutEmpty(item))
			}
			files[name] = items
		}
		return err
	}))
	return files
}
