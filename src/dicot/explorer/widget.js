// The explorer's page in a frame of a notebook, without access to it; only the rows that it selects come out.
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.style.cssText = `display: block; width: 100%; height: ${model.get("height")}px; border: 0`;
    frame.srcdoc = model.get("_page");
    const heard = (event) => {
      if (event.source !== frame.contentWindow || event.data?.dicot !== "selection") return;
      model.set("_selected", event.data.rows);
      model.save_changes();
    };
    addEventListener("message", heard);
    el.append(frame);
    return () => removeEventListener("message", heard);
  },
};
