package kubeconfig

// Merge joins files as kubectl joins the KUBECONFIG list: for each named entry, and for the current context, the
// first file that has it wins whole. The inputs stay as they are; nil ones are skipped.
func Merge(files ...*File) *File {
	merged := &File{
		Clusters: map[string]Cluster{},
		Users:    map[string]User{},
		Contexts: map[string]Context{},
	}
	for _, file := range files {
		if file == nil {
			continue
		}
		if merged.CurrentContext == "" {
			merged.CurrentContext = file.CurrentContext
		}
		addMissing(&merged.Clusters, file.Clusters)
		addMissing(&merged.Users, file.Users)
		addMissing(&merged.Contexts, file.Contexts)
		addMissing(&merged.Extensions, file.Extensions)
		addMissing(&merged.Preferences.Extensions, file.Preferences.Extensions)
		merged.Preferences.Colors = merged.Preferences.Colors || file.Preferences.Colors
	}
	return merged
}

func addMissing[M ~map[string]T, T any](into *M, from M) {
	if *into == nil && len(from) > 0 {
		*into = make(M, len(from))
	}
	for name, entry := range from {
		if _, taken := (*into)[name]; !taken {
			(*into)[name] = entry
		}
	}
}
