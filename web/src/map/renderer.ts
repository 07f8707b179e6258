/** Points as discs, drawn by WebGL 2 layer by layer, each in a shuffled order: any first part of one looks like the whole. */

import type { Camera } from "./camera";

/** The colour index of a point without a value; such points are drawn smaller and below the others. */
export const NONE = 255;

export const HIDDEN = 1;
export const SELECTED = 2;
export const MARKED = 4;

const LAYERS = 4;

const VERTEX = `#version 300 es
layout(location = 0) in vec2 place;
layout(location = 1) in float colour;
layout(location = 2) in float state;
uniform vec4 view;      // scale and offset of both axes
uniform float size;
uniform float ratio;    // pixels of the screen per pixel of the page
uniform float chosen;   // 1 where something is selected, and the rest steps back
uniform sampler2D palette;
out vec4 fill;
out float radius;
out float edge;         // how wide the ring is
void main() {
  int flags = int(state + 0.5);
  bool selected = (flags & 2) != 0;
  bool marked = (flags & 4) != 0;
  gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
  edge = marked ? 1.4 * ratio : 0.0;
  float diameter = size * (selected ? 1.35 : colour > 254.5 && !marked ? 0.8 : 1.0) + 3.0 * edge;
  gl_PointSize = diameter + 1.0;
  radius = 0.5 * diameter;
  fill = texelFetch(palette, ivec2(int(colour + 0.5), 0), 0);
  if (chosen > 0.5) fill.a *= selected ? 1.2 : 0.28;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 fill;
in float radius;
in float edge;
uniform vec3 ink;
out vec4 result;
void main() {
  float distance = length(gl_PointCoord - 0.5) * (2.0 * radius + 1.0);
  float ring = edge > 0.0 ? clamp(distance - (radius - edge) + 0.5, 0.0, 1.0) : 0.0;
  float alpha = min(1.0, fill.a) * clamp(radius + 0.5 - distance, 0.0, 1.0);
  result = vec4(mix(fill.rgb, ink, ring) * alpha, alpha);
}`;

export class Renderer {
  private readonly gl: WebGL2RenderingContext;
  private readonly uniforms = new Map<string, WebGLUniformLocation | null>();
  private readonly buffers: WebGLBuffer[] = [];
  private order = new Uint32Array();
  /** Where in the rows to draw each layer begins, and where the last one ends. */
  private first = new Uint32Array(LAYERS + 2);
  /** Where the whole picture grows before it is seen. */
  private readonly behind: WebGLFramebuffer;
  private drawn = 0; // points that are in it
  private fence: WebGLSync | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
    if (gl === null) throw new Error("This browser cannot draw with WebGL 2, which the map needs. Try another browser.");
    this.gl = gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
      const shader = gl.createShader(kind);
      if (shader === null) throw new Error("The browser took back its drawing context. Reload the page.");
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      throw new Error(`The map's shaders do not compile here: ${gl.getProgramInfoLog(program)}`);
    }
    gl.useProgram(program);
    for (const name of ["view", "size", "ratio", "chosen", "ink"]) this.uniforms.set(name, gl.getUniformLocation(program, name));
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
    this.behind = gl.createFramebuffer();
    gl.bindRenderbuffer(gl.RENDERBUFFER, gl.createRenderbuffer());
    const kinds = [gl.FLOAT, gl.UNSIGNED_BYTE, gl.UNSIGNED_BYTE];
    kinds.forEach((kind, place) => {
      this.buffers.push(gl.createBuffer());
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[place]);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, place === 0 ? 2 : 1, kind, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  }

  setPoints(points: Float32Array): void {
    this.order = shuffled(points.length / 2);
    this.fill(0, points);
  }

  /** Sorts the points into layers, one drawn over the other: without a value, with one, marked, selected. */
  setLooks(colours: Uint8Array, states: Uint8Array): void {
    const { gl, order } = this;
    const n = order.length;
    const layers = new Uint8Array(n);
    const first = new Uint32Array(LAYERS + 2);
    for (let row = 0; row < n; row++) {
      const state = states[row];
      const layer = state & HIDDEN ? LAYERS : state & SELECTED ? 3 : state & MARKED ? 2 : colours[row] === NONE ? 0 : 1;
      layers[row] = layer;
      first[layer + 1]++;
    }
    for (let layer = 0; layer < LAYERS; layer++) first[layer + 1] += first[layer];
    const next = first.slice();
    const rows = new Uint32Array(n);
    for (let i = 0; i < n; i++) rows[next[layers[order[i]]]++] = order[i];
    this.first = first;
    this.fill(1, colours);
    this.fill(2, states);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, rows.subarray(0, first[LAYERS]), gl.DYNAMIC_DRAW);
  }

  /** How many points are not hidden. */
  get count(): number {
    return this.first[LAYERS];
  }

  /** 256 colours of four bytes. */
  setPalette(palette: Uint8Array): void {
    const { gl } = this;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, palette);
  }

  /** Sets what the next pictures have in common; rings have the colour `ink`, three numbers to 255. */
  aim(camera: Camera, ratio: number, size: number, ink: number[], someSelected: boolean): void {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    const across = (2 * camera.scale) / camera.width;
    const along = (2 * camera.scale) / camera.height;
    gl.uniform4f(this.uniforms.get("view") ?? null, across, along, camera.lead / camera.width - camera.x * across, -camera.y * along);
    gl.uniform1f(this.uniforms.get("size") ?? null, size * ratio);
    gl.uniform1f(this.uniforms.get("ratio") ?? null, ratio);
    gl.uniform1f(this.uniforms.get("chosen") ?? null, someSelected ? 1 : 0);
    gl.uniform3f(this.uniforms.get("ink") ?? null, ink[0] / 255, ink[1] / 255, ink[2] / 255);
  }

  /** Draws a share of each layer, which is seen at the next frame. */
  sketch(share: number): void {
    const { gl, first } = this;
    gl.clear(gl.COLOR_BUFFER_BIT);
    for (let layer = 0; layer < LAYERS; layer++) {
      const count = first[layer + 1] - first[layer];
      if (count > 0) this.points(first[layer], Math.ceil(share * count));
    }
    this.send();
  }

  /** Begins a whole picture, of which nothing is seen before `more` has drawn the last point. */
  begin(): void {
    const { gl, canvas } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.behind);
    gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA8, canvas.width, canvas.height);
    gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, gl.getParameter(gl.RENDERBUFFER_BINDING));
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.drawn = 0;
  }

  /** Draws some more points of the picture that was begun; tells whether it is whole now. */
  more(share: number): boolean {
    const { gl, canvas, drawn } = this;
    const all = this.first[LAYERS];
    this.drawn = Math.min(all, drawn + Math.ceil(share * all));
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.behind);
    this.points(drawn, this.drawn - drawn);
    if (this.drawn === all) {
      const { width, height } = canvas;
      gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
      gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.send();
    return this.drawn === all;
  }

  /** Whether what was asked for last is not drawn yet. */
  get busy(): boolean {
    const { gl, fence } = this;
    return fence !== null && gl.getSyncParameter(fence, gl.SYNC_STATUS) === gl.UNSIGNALED;
  }

  private send(): void {
    const { gl } = this;
    gl.deleteSync(this.fence);
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
  }

  private points(first: number, count: number): void {
    this.gl.drawElements(this.gl.POINTS, count, this.gl.UNSIGNED_INT, 4 * first);
  }

  private fill(place: number, data: Float32Array | Uint8Array): void {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[place]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, data, this.gl.DYNAMIC_DRAW);
  }
}

/** The numbers below n in an order that is the same every time. */
function shuffled(n: number): Uint32Array<ArrayBuffer> {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (i + 1));
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}
