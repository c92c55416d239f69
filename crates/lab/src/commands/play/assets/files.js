// --- kernel files ------------------------------------------------------------------------------------------------------------------------------
const showFiles = async (group) => {
  shownGroup = group;
  files = await machines[0].call("files", { group });
  $("files").hidden = false;
  $("files-h").textContent = `Kernel files of ${group}, and of the machine`;
  const name = (path) => path.split("/").pop();
  const sets = (test) => `<optgroup label="${escaped(group)}">${files.group.filter(test).map(({ path }) => option(path, name(path))).join("")}</optgroup><optgroup label="machine">${files.machine.filter(test).map(({ path }) => option(path, path)).join("")}</optgroup>`;
  const before = [$("knob-path").value, $("read-path").value].map(name);
  $("knob-path").innerHTML = sets(({ write }) => write);
  $("read-path").innerHTML = sets(({ read }) => read);
  const pick = (id, wanted) => {
    const found = [...$(id).options].find(({ value }) => name(value) === wanted);
    if (found) $(id).value = found.value;
  };
  pick("knob-path", before[0] || "memory.max");
  pick("read-path", before[1] || "memory.stat");
  $("knob-of").innerHTML = machines.map(({ letter }, at) => option(at, letter, at === machines.length - 1)).join("");
  await knob();
  await read();
};
const knob = async () => {
  const path = $("knob-path").value, found = [...files.group, ...files.machine].find((file) => file.path === path);
  $("knob-doc").textContent = found?.doc ?? "";
  if (!found?.read) {
    $("knob-value").value = "";
    return;
  }
  const [told] = await machines[Number($("knob-of").value)].call("read", { paths: [path] });
  $("knob-value").value = (told.text ?? "").trim().split("\n")[0];
};
const read = async () => {
  const path = $("read-path").value;
  const told = await Promise.all(machines.map((one) => one.call("read", { paths: [path] })));
  const place = $("file-text");
  while (place.children.length > told.length) place.lastChild.remove();
  while (place.children.length < told.length) place.append(Object.assign(document.createElement("pre"), { tabIndex: 0 }));
  told.forEach(([{ text, error }], at) => place.children[at].textContent = (machines.length > 1 ? `# machine ${machines[at].letter}\n` : "") + (text ?? error));
};
/** Shows what was written up to this moment. */
const written = () => {
  const text = machines.map(({ letter, last: { status } }) => status.written && `<p>As events of a scenario, what was written in machine ${letter}:</p><pre tabindex="0">${escaped(status.written.trim())}</pre>`).join("");
  if (written.last !== text) $("written").innerHTML = written.last = text;
};
const write = (path, value, of) => doing(async () => {
  const machine = machines[of];
  took(machine, await machine.call("write", { path, value, objects: objects() }));
  settled();
});
