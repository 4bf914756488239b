package kubeconfig_test

import "maps"

// secret is every secret in the kubeconfigs. No error may contain it.
const secret = "xyzzy-secret"

// kubeconfigCase is a set of kubeconfig files and options. In files, <DIR> is the case's folder; newPKI defines the
// names of certificates.
type kubeconfigCase struct {
	name  string
	files map[string]string
	// list is KUBECONFIG; without it home/.kube/config is read. path is an explicit file. chdir is the working directory,
	// which makes the names in list relative.
	list  []string
	path  string
	chdir string

	context, cluster, user, namespace string

	// rejected is set if both sides reject it.
	rejected bool
	// differs is the reason why anykind rejects what client-go accepts.
	differs string
}

const https = "server: 'https://10.0.0.1:6443'"

// config returns a kubeconfig whose current context has a cluster and a user with these fields.
func config(cluster, user string) string {
	return "{apiVersion: v1, kind: Config, current-context: x,\nclusters: [{name: c, cluster: {" + cluster + "}}],\n" +
		"users: [{name: u, user: {" + user + "}}],\ncontexts: [{name: x, context: {cluster: c, user: u}}]}"
}

// one returns a case of one file.
func one(name, data string, changes ...func(*kubeconfigCase)) kubeconfigCase {
	c := kubeconfigCase{name: name, files: map[string]string{"config": data}, list: []string{"config"}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func rejected(c *kubeconfigCase) { c.rejected = true }

func differs(why string) func(*kubeconfigCase) { return func(c *kubeconfigCase) { c.differs = why } }

func with(files map[string]string) func(*kubeconfigCase) {
	return func(c *kubeconfigCase) { maps.Copy(c.files, files) }
}

func withOptions(context, cluster, user, namespace string) func(*kubeconfigCase) {
	return func(c *kubeconfigCase) {
		c.context = context
		c.cluster = cluster
		c.user = user
		c.namespace = namespace
	}
}

func kubeconfigCases() []kubeconfigCase {
	var all []kubeconfigCase
	for _, some := range [][]kubeconfigCase{
		clusterCases(), userCases(), execCases(), authProviderCases(), contextCases(), mergeCases(), formatCases(), brokenCases(),
	} {
		all = append(all, some...)
	}
	return all
}
