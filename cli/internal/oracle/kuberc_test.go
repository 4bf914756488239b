package oracle

import (
	"testing"

	"github.com/anykind/anykind/internal/testing/client"
)

// preferences is a kuberc file with aliases and defaults.
const preferences = `
apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults:
- command: get
  options: [{name: output, default: name}, {name: selector, default: app=web}]
- command: create namespace
  options: [{name: dry-run, default: client}]
- command: nonsense
  options: []
aliases:
- name: getcm
  command: get
  prependArgs: [cm]
  options: [{name: output, default: "jsonpath={.metadata.labels}"}]
- name: ns
  command: create namespace
  appendArgs: [made]
  options: [{name: dry-run, default: client}, {name: output, default: name}]
- name: nothing
  command: nonsense
- name: wrong
  command: get
  options: [{name: nonsense, default: a}]
- name: bad
  command: get
  options: [{name: chunk-size, default: a}]
- name: label
  command: get
`

// alphaPreferences is a file in the first version of the format, after a document of another kind.
const alphaPreferences = `
apiVersion: v1
kind: ConfigMap
---
apiVersion: kubectl.config.k8s.io/v1alpha1
kind: Preference
unknown: field
overrides:
- command: get
  flags: [{name: output, default: name}]
aliases:
- name: getcm
  command: get
  prependArgs: [cm]
  flags: [{name: no-headers, default: "true"}]
`

// fileOf is a kuberc file with fields.
func fileOf(fields string) map[string]string {
	return map[string]string{"kuberc": "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n" + fields}
}

func kubercCases() []oracleCase {
	return []oracleCase{
		{line: "get cm"},
		{line: "get cm -o jsonpath={.items[*].metadata.name}"},
		{line: "get cm -ojsonpath={.items[*].metadata.name} --selector=app=db"},
		{line: "get cm -Ao name"},
		{line: "getcm settings"},
		{line: "getcm settings --output=name"},
		{line: "-n $NS getcm settings", fails: true, differs: &difference{[]string{"stderr"}, "kubectl takes the flag's value for the command, and then looks for a plugin"}},
		{line: "getcm", masks: []mask{{`(?s).*`, "output"}}},
		{line: "ns"},
		{line: "ns -o yaml"},
		{line: "create namespace x"},
		{line: "create ns x", fails: false},
		{line: "create namespace x --dry-run=server"},
		{line: "nothing", fails: true},
		{line: "wrong", fails: true, masks: []mask{{`in alias \S+`, "in alias X"}}},
		{line: "bad", fails: true, masks: []mask{{`in alias \S+`, "in alias X"}}},
		{line: "none", fails: true},
		{line: "label cm other a=b --dry-run=client"},
		{line: "__complete getcm setti"},
		{line: "get cm --kuberc=old", files: map[string]string{"old": alphaPreferences}, differs: &difference{[]string{"stderr"}, "anyctl reports the unknown field in other words, and ends the line"}},
		{line: "getcm other --kuberc old -o name", files: map[string]string{"old": alphaPreferences}, differs: &difference{[]string{"stderr"}, "anyctl reports the unknown field in other words, and ends the line"}},
		{line: "get cm --kuberc=none", fails: true},
		{line: "get cm --kuberc=", fails: true},
		{line: "get cm other", env: []string{"KUBERC=off"}},
		{line: "get cm other", env: []string{"KUBECTL_KUBERC=false"}},
		{line: "get cm --kuberc=kuberc", env: []string{"KUBERC=off"}, fails: true},
		{line: "get cm", files: fileOf("defaults: [{command: get, options: [{name: --output, default: a}]}]\n"), fails: true},
		{line: "get cm", files: fileOf("defaults: [{command: get, options: [{name: nonsense, default: a}]}]\n"), fails: true},
		{line: "get cm", files: fileOf("defaults: [{command: get, options: [{name: chunk-size, default: a}]}]\n"), fails: true},
		{line: "get cm", files: fileOf("aliases: [{name: a-b, command: get}]\n"), fails: true},
		{line: "get cm", files: fileOf("aliases: [{name: a, command: get}, {name: a, command: get}]\n"), fails: true},
		{line: "getcm settings", files: fileOf("aliases: [{name: getcm, command: get}]\ndefaults: [{command: getcm, options: []}]\n"), fails: true},
		{line: "get cm other", files: fileOf("credentialPluginPolicy: Nonsense\n"), fails: true},
		{line: "get cm other", files: fileOf("credentialPluginPolicy: Allowlist\n"), fails: true},
		{line: "get cm other", files: fileOf("credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{command: a}]\n"), fails: true},
		{line: "get cm other", files: fileOf("credentialPluginPolicy: DenyAll\n")},
		{line: "get cm other", files: map[string]string{"kuberc": "kind: Nonsense\n"}, fails: true, masks: []mask{{`, use --v=5 to see details`, ""}}},
		{line: "get cm other", files: map[string]string{"kuberc": ""}},

		{line: "kuberc view"},
		{line: "kuberc view -o json", unordered: true, masks: []mask{{`(?m),?$`, ""}}},
		{line: "kuberc view --kuberc=none", fails: true},
		{line: "kuberc view", env: []string{"KUBERC=off"}, fails: true},
		{line: "kuberc view", env: []string{"KUBERC="}, masks: []mask{{`/tmp/\S+/\.kube`, "HOME"}}},
		{line: "kuberc nonsense", fails: true},
		{line: "kuberc set --section defaults --command get --option output=wide", fails: true},
		{line: "kuberc set --section defaults --command get --option --output=wide --option a=b=c --overwrite"},
		{line: "kuberc set --section defaults --command get --overwrite"},
		{line: "kuberc set --section defaults --command 'set env' --option output=yaml", files: map[string]string{"kuberc": ""}, lastVersion: lastVersion{36, "kubectl 1.37 rejects an empty file and writes null into it"}},
		{line: "kuberc set --section=aliases --name new --command get --prependarg nodes --appendarg -- --appendarg b --kuberc=folder/new"},
		{line: "kuberc set --section=aliases --name getcm --command describe --overwrite"},
		{line: "kuberc set --section=aliases --name getcm --command describe", fails: true},
		{line: "kuberc set --section=credentialplugin --policy Allowlist --allowlist-entry command=a --allowlist-entry command=/b"},
		{line: "kuberc set --section=credentialplugin --policy DenyAll"},
		{line: "kuberc set --section=credentialplugin --policy Allowlist --allowlist-entry name=a,b,c=d,command=", fails: true},
		{line: "kuberc set --section=credentialplugin --policy Allowlist", fails: true},
		{line: "kuberc set --section=credentialplugin --policy AllowAll --allowlist-entry command=a", fails: true},
		{line: "kuberc set --section=credentialplugin --policy nonsense", fails: true},
		{line: "kuberc set --section=credentialplugin", fails: true},
		{line: "kuberc set --section nonsense", fails: true},
		{line: "kuberc set --section aliases", fails: true},
		{line: "kuberc set --section aliases --name a", fails: true},
		{line: "kuberc set --section defaults --name a", fails: true},
		{line: "kuberc set --section defaults --command get --appendarg a", fails: true},
		{line: "kuberc set --section defaults --command get --option a", fails: true},
		{line: "kuberc set", fails: true},
	}
}

func TestKuberc_SameAsKubectl(t *testing.T) {
	t.Parallel()
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, kubercObjects)
	for _, c := range kubercCases() {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			c.readOnly = true
			c.env = append([]string{"KUBERC=kuberc"}, c.env...)
			c.masks = append(c.masks, mask{`(?m)^error: error occurred`, "error occurred"})
			c.kubeconfigs = []string{"kuberc", "folder/new"}
			if _, hasFile := c.files["kuberc"]; !hasFile {
				c.files = map[string]string{"kuberc": preferences, "old": c.files["old"]}
			}
			o.compare(t, &c)
		})
	}
}

// kubercObjects are the objects of get.
const kubercObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, labels: {app: db}}
`
