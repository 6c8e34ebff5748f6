(function (window, document) {
  "use strict";
  var settings = { currency: "TWD", locale: document.documentElement.lang, favouriteLimit: 50, version: "7.3.1" };
  function each(selector, visit) {
    Array.prototype.forEach.call(document.querySelectorAll(selector), visit);
  }
  function formatMoney(value) {
    return new Intl.NumberFormat(settings.locale, { style: "currency", currency: settings.currency, maximumFractionDigits: 0 }).format(value);
  }
  function readFavourites() {
    try {
      return JSON.parse(window.localStorage.getItem("favourites") || "[]");
    } catch (error) {
      return [];
    }
  }
  function writeFavourites(list) {
    window.localStorage.setItem("favourites", JSON.stringify(list.slice(-settings.favouriteLimit)));
  }
  function toggleFavourite(event) {
    var id = event.currentTarget.getAttribute("data-id");
    var list = readFavourites();
    var at = list.indexOf(id);
    if (at < 0) {
      list.push(id);
    } else {
      list.splice(at, 1);
    }
    writeFavourites(list);
    event.currentTarget.classList.toggle("is-favourite", at < 0);
  }
  function rentPerPing(price, area) {
    return area > 0 ? Math.round(price / area) : null;
  }
  function costOverLease(price, fee, months, deposit) {
    return { rent: price * months, fees: fee * months, deposit: price * deposit, total: (price + fee) * months };
  }
  function showCalculator(state) {
    var place = document.getElementById("calculator");
    if (!place || !state || !state.price) {
      return;
    }
    var cost = costOverLease(state.price, state.fee || 0, state.lease_months || 12, state.deposit_months || 2);
    var perPing = rentPerPing(state.price, state.area_ping);
    place.textContent = formatMoney(cost.total) + (perPing ? " (" + formatMoney(perPing) + ")" : "");
  }
  function lazyPictures() {
    if (!("IntersectionObserver" in window)) {
      return;
    }
    var observer = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting) {
          entry.target.classList.add("is-visible");
          observer.unobserve(entry.target);
        }
      });
    }, { rootMargin: "200px" });
    each("[data-lazy]", function (element) { observer.observe(element); });
  }
  function closeOnEscape(event) {
    if (event.key === "Escape") {
      each(".is-open", function (element) { element.classList.remove("is-open"); });
    }
  }
  document.addEventListener("DOMContentLoaded", function () {
    each("[data-favourite]", function (element) { element.addEventListener("click", toggleFavourite); });
    lazyPictures();
    showCalculator(window.__LISTING__);
    document.addEventListener("keydown", closeOnEscape);
  });
})(window, document);
